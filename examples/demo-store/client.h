/* SPDX-License-Identifier: MIT */
/*
 * The client library: asynchronous writes and reads of named objects.
 *
 * Threads: the caller's (aio_write, aio_read), a sender, a reader, and a finisher that calls the callbacks.
 */
#ifndef DEMO_CLIENT_H
#define DEMO_CLIENT_H

#include <stdint.h>

#include "clock.h"

struct demo_client;
struct demo_completion;

/* CLOCK_MONOTONIC right before and right after the first tracepoint of an op (begin, begun) and the last (end, ended).
 * */
struct demo_times {
    int64_t begin_ns, begun_ns, end_ns, ended_ns;
};

/* result: bytes, or -errno. Called on the finisher's thread; the completion is given back when it returns. */
typedef void demo_callback(void *arg, int32_t result);

/* Waits up to timeout_ms for the server's socket. injectors: INJECT_COUNT of them, or NULL. Returns 0 or -errno. */
int demo_connect(struct demo_client **out, const char *socket_path, int timeout_ms, struct injector *injectors);
/* Every op must have completed. */
void demo_disconnect(struct demo_client *c);

/*
 * One for each op: taken from a free list, last given back first. NULL without memory. *times is complete when the
 * callback is called. truth_id is carried along for the log beside the trace and appears in no tracepoint.
 */
struct demo_completion *demo_completion_get(struct demo_client *c, demo_callback *cb, void *arg,
                                            struct demo_times *times, uint64_t truth_id);

/*
 * Starts an op on [offset, offset + length) of the object; buf stays the caller's to keep until the callback.
 * Returns 0, or -errno: then nothing was started and the completion was given back.
 */
int demo_aio_write(struct demo_client *c, struct demo_completion *comp, const char *oid, const void *buf,
                   uint32_t length, uint64_t offset);
int demo_aio_read(struct demo_client *c, struct demo_completion *comp, const char *oid, void *buf, uint32_t length,
                  uint64_t offset);

#endif
