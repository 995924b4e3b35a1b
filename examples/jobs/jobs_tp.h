// SPDX-License-Identifier: MIT
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER jobs
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./jobs_tp.h"
#if !defined(JOBS_TP_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define JOBS_TP_H
#include <lttng/tracepoint.h>
LTTNG_UST_TRACEPOINT_EVENT(jobs, queued, LTTNG_UST_TP_ARGS(long, job),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(long, id, job)))
LTTNG_UST_TRACEPOINT_EVENT(jobs, started, LTTNG_UST_TP_ARGS(long, job),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(long, id, job)))
LTTNG_UST_TRACEPOINT_EVENT(jobs, done, LTTNG_UST_TP_ARGS(long, job),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(long, id, job)))
#endif
#include <lttng/tracepoint-event.h>
