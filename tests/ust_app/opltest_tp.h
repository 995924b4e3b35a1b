/* SPDX-License-Identifier: MIT */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER opltest
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./opltest_tp.h"
#if !defined(OPLTEST_TP_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define OPLTEST_TP_H
#include <lttng/tracepoint.h>
LTTNG_UST_TRACEPOINT_EVENT(opltest, tick, LTTNG_UST_TP_ARGS(unsigned long, n),
                           LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(unsigned long, n, n)))
#endif
#include <lttng/tracepoint-event.h>
