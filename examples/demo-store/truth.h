/* SPDX-License-Identifier: MIT */
/*
 * The truth beside the trace: which op each tracepoint was hit for, by the op's number, which no event carries.
 * Kept in memory while the benchmark runs, written as CSV at the end.
 */
#ifndef DEMO_TRUTH_H
#define DEMO_TRUTH_H

#include <stdint.h>

#include "clock.h"
#include "demo_tp.h"

#define TRUTH_NONE UINT64_MAX /* a point of a batch */

extern int truth_enabled;

/* Reserves room for that many points; -1 without memory. */
int truth_start(uint64_t capacity);
void truth_mark(uint64_t truth_id, const char *event, int64_t time_ns);
/* truth_id,event,tid,time_ns per line; truth_id is empty for a point of a batch. Returns 0, or -errno; *dropped: points
 * that found no room. */
int truth_write(const char *path, uint64_t *dropped);

/* The tracepoint, and its line in the truth: the clock is read right before the tracepoint reads it. */
#define POINT(truth_id, event, ...)                                                                                    \
    do {                                                                                                               \
        if (truth_enabled) truth_mark(truth_id, #event, now_ns());                                                     \
        lttng_ust_tracepoint(demo, event, __VA_ARGS__);                                                                \
    } while (0)

/* The same for the first and the last point of an op. The client's own reading of the clock comes right before the
   tracepoint at both ends, so that what a tracepoint costs is no part of the difference between the two latencies; the
   reading right after it says how far apart the two can be. */
#define END_POINT(truth_id, before_ns, after_ns, event, ...)                                                           \
    do {                                                                                                               \
        before_ns = now_ns();                                                                                          \
        lttng_ust_tracepoint(demo, event, __VA_ARGS__);                                                                \
        after_ns = now_ns();                                                                                           \
        if (truth_enabled) truth_mark(truth_id, #event, before_ns);                                                    \
    } while (0)

#endif
