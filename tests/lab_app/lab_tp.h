// SPDX-License-Identifier: MIT
// The tracepoints of the lab application, as in the recordings of tests/traces (app-*).
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER lab
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./lab_tp.h"
#if !defined(LAB_TP_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define LAB_TP_H
#include <lttng/tracepoint.h>
#include <stdint.h>

#define LAB_ARGS \
    LTTNG_UST_TP_ARGS(const char *, oid, uint64_t, op_id, uint64_t, off, uint32_t, len, int, aux)
LTTNG_UST_TRACEPOINT_EVENT_CLASS(lab, op, LAB_ARGS,
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_string(oid, oid)
        lttng_ust_field_integer(uint64_t, op_id, op_id)
        lttng_ust_field_integer(uint64_t, off, off)
        lttng_ust_field_integer(uint32_t, len, len)
        lttng_ust_field_integer(int, aux, aux)))
#define LAB_EVENT(name) LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(lab, op, lab, name, LAB_ARGS)
LAB_EVENT(client_submit)
LAB_EVENT(queue_enter)
LAB_EVENT(dequeue)
LAB_EVENT(io_begin)
LAB_EVENT(io_end)
LAB_EVENT(sync_begin)
LAB_EVENT(sync_end)
LAB_EVENT(client_reply)
#endif
#include <lttng/tracepoint-event.h>
