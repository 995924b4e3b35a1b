// SPDX-License-Identifier: MIT
// The records of block requests on their way into a CTF stream (request_writer.c), beside a bridge.
#pragma once
#include <stdbool.h>
#include <stdint.h>

// Are there programs whose records are written? The bridge tells them when the session records.
extern bool requests_wanted;

// The path of a cgroup that the bridge has met, which the caller frees; NULL: it has not, or there is none.
char *path_of_cgroup(uint64_t number);
