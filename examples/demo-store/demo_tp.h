/* SPDX-License-Identifier: MIT */
/*
 * LTTng-UST provider `demo`: the tracepoints of the demo store, in the order in which an op meets them.
 *
 * No event carries an id of the op. Keys are pointers (recycled), a message's (client, seq) with a 16-bit seq that
 * wraps, and nothing at all where the thread works for one op. README.md has the table.
 */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER demo

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./demo_tp.h"

#if !defined(DEMO_TP_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define DEMO_TP_H

#include <lttng/tracepoint.h>
#include <stdint.h>

/* ---- Event shapes, by the key that they carry ---- */

/* An op begins: completion, object, offset in the object and length in bytes. */
LTTNG_UST_TRACEPOINT_EVENT_CLASS(
    demo, begin,
    LTTNG_UST_TP_ARGS(const void *, completion, const char *, oid, uint64_t, off, uint32_t, len),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer_hex(uintptr_t, completion, (uintptr_t) completion)
        lttng_ust_field_string(oid, oid)
        lttng_ust_field_integer(uint64_t, off, off)
        lttng_ust_field_integer(uint32_t, len, len)))

/* Key: the completion's pointer, valid in the client process. value: queue depth or result. */
LTTNG_UST_TRACEPOINT_EVENT_CLASS(
    demo, completion,
    LTTNG_UST_TP_ARGS(const void *, completion, int32_t, value),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer_hex(uintptr_t, completion, (uintptr_t) completion)
        lttng_ust_field_integer(int32_t, value, value)))

/* Key: the message's identity, the same at both ends of the socket. */
LTTNG_UST_TRACEPOINT_EVENT_CLASS(
    demo, message,
    LTTNG_UST_TP_ARGS(uint32_t, client, uint16_t, seq, uint32_t, bytes),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(uint32_t, client, client)
        lttng_ust_field_integer(uint16_t, seq, seq)
        lttng_ust_field_integer(uint32_t, bytes, bytes)))

/* Key: the server's op structure. value: queue depth, shard or result. */
LTTNG_UST_TRACEPOINT_EVENT_CLASS(
    demo, op,
    LTTNG_UST_TP_ARGS(const void *, op, int32_t, value),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer_hex(uintptr_t, op, (uintptr_t) op)
        lttng_ust_field_integer(int32_t, value, value)))

/* Key: the control block of libaio or the user_data of io_uring. */
LTTNG_UST_TRACEPOINT_EVENT_CLASS(
    demo, iocb,
    LTTNG_UST_TP_ARGS(const void *, iocb, int32_t, value),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer_hex(uintptr_t, iocb, (uintptr_t) iocb)
        lttng_ust_field_integer(int32_t, value, value)))

/* No key: the op is the one that the thread works for (or the batch that it has open). */
LTTNG_UST_TRACEPOINT_EVENT_CLASS(
    demo, step,
    LTTNG_UST_TP_ARGS(int32_t, value),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(int32_t, value, value)))

#define DEMO_EVENT_COMPLETION(name) \
    LTTNG_UST_TRACEPOINT_EVENT_INSTANCE( \
        demo, completion, demo, name, LTTNG_UST_TP_ARGS(const void *, completion, int32_t, value))
#define DEMO_EVENT_MESSAGE(name) \
    LTTNG_UST_TRACEPOINT_EVENT_INSTANCE( \
        demo, message, demo, name, LTTNG_UST_TP_ARGS(uint32_t, client, uint16_t, seq, uint32_t, bytes))
#define DEMO_EVENT_OP(name) \
    LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(demo, op, demo, name, LTTNG_UST_TP_ARGS(const void *, op, int32_t, value))
#define DEMO_EVENT_IOCB(name) \
    LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(demo, iocb, demo, name, LTTNG_UST_TP_ARGS(const void *, iocb, int32_t, value))
#define DEMO_EVENT_STEP(name) \
    LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(demo, step, demo, name, LTTNG_UST_TP_ARGS(int32_t, value))

/* ---- Client: the caller's thread ---- */

LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(
    demo, begin, demo, aio_write,
    LTTNG_UST_TP_ARGS(const void *, completion, const char *, oid, uint64_t, off, uint32_t, len))
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(
    demo, begin, demo, aio_read,
    LTTNG_UST_TP_ARGS(const void *, completion, const char *, oid, uint64_t, off, uint32_t, len))
DEMO_EVENT_STEP(client_enqueue)           /* value: ops in the client queue */

/* ---- Client: sender thread ---- */

DEMO_EVENT_COMPLETION(client_dequeue)     /* value: 0 */
DEMO_EVENT_STEP(client_encode)            /* value: bytes of the message */
DEMO_EVENT_MESSAGE(client_send)           /* before sendmsg(2) */
DEMO_EVENT_STEP(client_sent)              /* after it; value: 0 or -errno */

/* ---- Server: dispatch thread ---- */

DEMO_EVENT_MESSAGE(server_recv)           /* the header was read */
DEMO_EVENT_STEP(server_decode)            /* the payload was read; value: its bytes */
DEMO_EVENT_OP(shard_enqueue)              /* value: the shard */

/* ---- Server: worker thread ---- */

DEMO_EVENT_OP(shard_dequeue)              /* value: the shard */
DEMO_EVENT_STEP(object_lookup)            /* value: the object's slot on the device, or -errno */
LTTNG_UST_TRACEPOINT_EVENT(
    demo, io_begin, /* off: on the device, bytes; 2^64 - 1: not known */
    LTTNG_UST_TP_ARGS(const void *, op, uint64_t, off, uint32_t, len),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer_hex(uintptr_t, op, (uintptr_t) op)
        lttng_ust_field_integer(uint64_t, off, off)
        lttng_ust_field_integer(uint32_t, len, len)))
DEMO_EVENT_IOCB(io_submit)                /* libaio, uring: before the system call */
DEMO_EVENT_STEP(io_submitted)             /* after it; value: 0 or -errno */
DEMO_EVENT_IOCB(io_reap)                  /* reaper thread; value: the result */
DEMO_EVENT_OP(io_end)                     /* value: the result */

/* ---- Server: group commit (backend buffered) ---- */

DEMO_EVENT_OP(commit_enqueue)             /* worker; value: ops in the commit queue */
DEMO_EVENT_STEP(commit_open)              /* commit thread; value: members */
DEMO_EVENT_OP(commit_join)                /* once per member; value: its ordinal */
DEMO_EVENT_STEP(sync_begin)               /* before fdatasync(2); value: members */
DEMO_EVENT_STEP(sync_end)                 /* after it; value: 0 or -errno */
DEMO_EVENT_STEP(commit_close)             /* value: members */
DEMO_EVENT_OP(commit_finish)              /* a member's turn; value: its ordinal */

/* ---- Server: reply, on the thread that finished the op ---- */

DEMO_EVENT_STEP(op_finish)                /* value: the result */
DEMO_EVENT_MESSAGE(reply_send)            /* before sendmsg(2) */
DEMO_EVENT_STEP(reply_sent)               /* after it; value: 0 or -errno */

/* ---- Client: reader thread, finisher thread ---- */

DEMO_EVENT_MESSAGE(reply_recv)            /* the header was read */
DEMO_EVENT_STEP(reply_decode)             /* the payload was read; value: its bytes */
DEMO_EVENT_COMPLETION(finisher_enqueue)   /* value: completions in the finisher's queue */
DEMO_EVENT_COMPLETION(finisher_dequeue)   /* value: 0 */
DEMO_EVENT_COMPLETION(aio_complete)       /* before the callback; value: the result */

#endif /* DEMO_TP_H */

#include <lttng/tracepoint-event.h>
