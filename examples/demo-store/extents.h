/* SPDX-License-Identifier: MIT */
/* Where the bytes of a file are on its file system's device: what a tracepoint must say for its I/O to be found there.
 * */
#ifndef DEMO_EXTENTS_H
#define DEMO_EXTENTS_H

#include <stdint.h>

struct fiemap;

#define EXTENTS_UNKNOWN UINT64_MAX

/* The extents of a preallocated file; NULL for a device, where every offset is its own, or without FIEMAP. */
struct fiemap *extents_read(int fd, int *is_device);
/* Byte offset on the device of a byte of the file; EXTENTS_UNKNOWN for a hole. */
uint64_t extents_find(const struct fiemap *map, uint64_t offset);

#endif
