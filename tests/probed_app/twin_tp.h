/* SPDX-License-Identifier: MIT */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER twin
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./twin_tp.h"
#if !defined(TWIN_TP_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define TWIN_TP_H
#include <lttng/tracepoint.h>
LTTNG_UST_TRACEPOINT_EVENT(twin, submit, LTTNG_UST_TP_ARGS(long, id_, const char *, name_, int, delta_),
                           LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(long, id, id_) lttng_ust_field_string(name, name_)
                                                   lttng_ust_field_integer(int, delta, delta_)))
LTTNG_UST_TRACEPOINT_EVENT(twin, start, LTTNG_UST_TP_ARGS(long, id_),
                           LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(long, id, id_)))
LTTNG_UST_TRACEPOINT_EVENT(twin, finish, LTTNG_UST_TP_ARGS(long, id_),
                           LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(long, id, id_)))
#endif
#include <lttng/tracepoint-event.h>
