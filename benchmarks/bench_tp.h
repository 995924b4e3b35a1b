/* SPDX-License-Identifier: MIT */
/* Provider `bench`: 18 events per op, equal but for their names. With LTTng's contexts and header 79 bytes each. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER bench
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./bench_tp.h"
#if !defined(BENCH_TP_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define BENCH_TP_H
#include <lttng/tracepoint.h>
#include <stdint.h>

#define BENCH_ARGS                                                                                       \
    LTTNG_UST_TP_ARGS(uint64_t, op, const char *, oid, uint64_t, off, uint32_t, len, uint32_t, lane)

/* lane: which channel takes the event (its filter); the generator's thread pair. */
LTTNG_UST_TRACEPOINT_EVENT_CLASS(
    bench, step, BENCH_ARGS,
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(uint64_t, op, op)
        lttng_ust_field_string(oid, oid)
        lttng_ust_field_integer(uint64_t, off, off)
        lttng_ust_field_integer(uint32_t, len, len)
        lttng_ust_field_integer(uint32_t, lane, lane)))

#define BENCH_STEP(name) LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(bench, step, bench, name, BENCH_ARGS)
BENCH_STEP(s00) BENCH_STEP(s01) BENCH_STEP(s02) BENCH_STEP(s03) BENCH_STEP(s04) BENCH_STEP(s05)
BENCH_STEP(s06) BENCH_STEP(s07) BENCH_STEP(s08) BENCH_STEP(s09) BENCH_STEP(s10) BENCH_STEP(s11)
BENCH_STEP(s12) BENCH_STEP(s13) BENCH_STEP(s14) BENCH_STEP(s15) BENCH_STEP(s16) BENCH_STEP(s17)
#endif
#include <lttng/tracepoint-event.h>
