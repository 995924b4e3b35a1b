// SPDX-License-Identifier: MIT
// The UST provider `cephprobe`: hits of uprobes on ceph-osd's functions, one event per function (probe_event.h has the list).
//
//   ktime        CLOCK_MONOTONIC ns at the hit: the event's time. UST's own time is when the bridge passed it on
//   cpu, seq     CPU of the hit; per-CPU number, from 1, without gaps unless events were lost
//   tid, pid, comm   the thread, as the collector's PID namespace numbers it; -1: outside of that namespace
//   op, msg, txc, repop   addresses of an OpRequest, Message, BlueStore::TransContext, PrimaryLogPG::RepGather
//   msg_tid, msg_type, client   the message's number, its type (42: OSD_OP), and the number of the client that sent it
//   state        which state of the transaction ends: the number of its latency counter, from BlueStore's first one
//   text         what mark_event() is given
//
// Events come in the order of ktime. `cephprobe:watermark` and `cephprobe:lost`: as those of the provider `block`.

#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER cephprobe

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./probe_tp.h"

#if !defined(OPLINE_PROBE_TP_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define OPLINE_PROBE_TP_H

#include <lttng/tracepoint.h>
#include <stdint.h>

#include <linux/types.h>

#include "bridge_record.h"
#include "probe_event.h"

#ifndef OPLINE_PROBE_FIELDS
#define OPLINE_PROBE_FIELDS
#define PROBE_ARGS LTTNG_UST_TP_ARGS(const struct probe_event *, e, uint64_t, seq_number)
#define PROBE_ORIGIN                                                                                                   \
    lttng_ust_field_integer(uint64_t, ktime, e->ktime)                                                                 \
    lttng_ust_field_integer(uint32_t, cpu, e->cpu)                                                                     \
    lttng_ust_field_integer(uint64_t, seq, seq_number)                                                                 \
    lttng_ust_field_integer(int32_t, tid, (int32_t)e->tid)                                                             \
    lttng_ust_field_integer(int32_t, pid, (int32_t)e->pid)                                                             \
    lttng_ust_field_array_text(char, comm, e->comm, 16)
#define PROBE_MESSAGE                                                                                                  \
    lttng_ust_field_integer_hex(uint64_t, msg, e->msg)                                                                 \
    lttng_ust_field_integer(uint64_t, msg_tid, e->msg_tid)                                                             \
    lttng_ust_field_integer(uint32_t, msg_type, e->msg_type)                                                           \
    lttng_ust_field_integer(uint64_t, client, e->client)

// The class of each shape.
#define CLASS_THREAD probe_thread
#define CLASS_MESSAGE probe_message
#define CLASS_REQUEST probe_request
#define CLASS_OP(r) probe_op
#define CLASS_OP_AT(r) probe_op
#define CLASS_COMMIT probe_op
#define CLASS_ISSUE probe_issue
#define CLASS_REPOP probe_repop
#define CLASS_TXC(r) probe_txc
#define CLASS_STATE probe_state
#define CLASS_MARK probe_mark
#define PROBE_INSTANCE(class, name) LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(cephprobe, class, cephprobe, name, PROBE_ARGS)
#define PROBE_EVENT(name, at, shape, symbol) PROBE_INSTANCE(CLASS_##shape, name)
#endif

LTTNG_UST_TRACEPOINT_EVENT_CLASS(cephprobe, probe_thread, PROBE_ARGS, LTTNG_UST_TP_FIELDS(PROBE_ORIGIN))
LTTNG_UST_TRACEPOINT_EVENT_CLASS(cephprobe, probe_message, PROBE_ARGS, LTTNG_UST_TP_FIELDS(PROBE_MESSAGE PROBE_ORIGIN))
LTTNG_UST_TRACEPOINT_EVENT_CLASS(cephprobe, probe_request, PROBE_ARGS,
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer_hex(uint64_t, op, e->op) PROBE_MESSAGE PROBE_ORIGIN))
LTTNG_UST_TRACEPOINT_EVENT_CLASS(cephprobe, probe_op, PROBE_ARGS,
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer_hex(uint64_t, op, e->op) PROBE_ORIGIN))
LTTNG_UST_TRACEPOINT_EVENT_CLASS(cephprobe, probe_issue, PROBE_ARGS,
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer_hex(uint64_t, op, e->op)
        lttng_ust_field_integer_hex(uint64_t, repop, e->repop) PROBE_ORIGIN))
LTTNG_UST_TRACEPOINT_EVENT_CLASS(cephprobe, probe_repop, PROBE_ARGS,
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer_hex(uint64_t, repop, e->repop) PROBE_ORIGIN))
LTTNG_UST_TRACEPOINT_EVENT_CLASS(cephprobe, probe_txc, PROBE_ARGS,
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer_hex(uint64_t, txc, e->txc) PROBE_ORIGIN))
LTTNG_UST_TRACEPOINT_EVENT_CLASS(cephprobe, probe_state, PROBE_ARGS,
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer_hex(uint64_t, txc, e->txc)
        lttng_ust_field_integer(int32_t, state, e->state) PROBE_ORIGIN))
LTTNG_UST_TRACEPOINT_EVENT_CLASS(cephprobe, probe_mark, PROBE_ARGS,
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer_hex(uint64_t, op, e->op)
        lttng_ust_field_array_text(char, text, e->text, 32) PROBE_ORIGIN))
PROBES(PROBE_EVENT)

LTTNG_UST_TRACEPOINT_EVENT(cephprobe, watermark, LTTNG_UST_TP_ARGS(uint64_t, through),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(uint64_t, ktime, through)
        lttng_ust_field_integer(uint64_t, drained_through, through)))

LTTNG_UST_TRACEPOINT_EVENT(cephprobe, lost,
    LTTNG_UST_TP_ARGS(uint64_t, time, int32_t, cpu_number, uint64_t, how_many, const char *, why),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(uint64_t, ktime, time)
        lttng_ust_field_integer(int32_t, cpu, cpu_number)
        lttng_ust_field_integer(uint64_t, count, how_many)
        lttng_ust_field_string(reason, why)))

#endif

#include <lttng/tracepoint-event.h>
