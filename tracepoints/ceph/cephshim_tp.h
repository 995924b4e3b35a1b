// SPDX-License-Identifier: MIT
// The UST provider `cephshim`: what README.md lists, event by event. Names, types and order of the fields are part of the interface: op models
// and recorded traces have them. New fields go to the end.
//
// The same events are those of the provider `cephring` (CEPHSHIM_OF_RING), by which the collector sends on what threads have put into their rings. There
// each begins with its time and who it was: `ktime` (CLOCK_MONOTONIC, ns: the event's time), `vpid`, `vtid`, `procname`, `cpu`.

#undef LTTNG_UST_TRACEPOINT_PROVIDER
#ifdef CEPHSHIM_OF_RING
#define LTTNG_UST_TRACEPOINT_PROVIDER cephring
#else
#define LTTNG_UST_TRACEPOINT_PROVIDER cephshim
#endif

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./cephshim_tp.h"

#if !defined(OPLINE_CEPHSHIM_TP_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define OPLINE_CEPHSHIM_TP_H

#include <lttng/tracepoint.h>
#include <stdint.h>

#include "msgr.h"

#ifndef CEPHSHIM_EVENT
#ifdef CEPHSHIM_OF_RING
struct ring_origin { uint64_t time_ns; int32_t pid, tid; uint32_t cpu; char name[16]; };
#define CEPHSHIM_PROVIDER cephring
#define CEPHSHIM_ARGS(...) LTTNG_UST_TP_ARGS(const struct ring_origin *, origin, __VA_ARGS__)
#define CEPHSHIM_FIELDS(...)                                                                                           \
    LTTNG_UST_TP_FIELDS(                                                                                               \
        lttng_ust_field_integer(uint64_t, ktime, origin->time_ns)                                                      \
        lttng_ust_field_integer(int32_t, vpid, origin->pid)                                                            \
        lttng_ust_field_integer(int32_t, vtid, origin->tid)                                                            \
        lttng_ust_field_string(procname, origin->name)                                                                 \
        lttng_ust_field_integer(uint32_t, cpu, origin->cpu)                                                            \
        __VA_ARGS__)
#else
#define CEPHSHIM_PROVIDER cephshim
#define CEPHSHIM_ARGS(...) LTTNG_UST_TP_ARGS(__VA_ARGS__)
#define CEPHSHIM_FIELDS(...) LTTNG_UST_TP_FIELDS(__VA_ARGS__)
#endif
#define CEPHSHIM_EVENT(name, args, fields)                                                                             \
    LTTNG_UST_TRACEPOINT_EVENT(CEPHSHIM_PROVIDER, name, LTTNG_UST__TP_PARAMS(args), LTTNG_UST__TP_PARAMS(fields))
#define CEPHSHIM_CLASS(name, args, fields)                                                                             \
    LTTNG_UST_TRACEPOINT_EVENT_CLASS(CEPHSHIM_PROVIDER, name, LTTNG_UST__TP_PARAMS(args), LTTNG_UST__TP_PARAMS(fields))
#define CEPHSHIM_INSTANCE(class, name, args)                                                                           \
    LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(CEPHSHIM_PROVIDER, class, CEPHSHIM_PROVIDER, name, LTTNG_UST__TP_PARAMS(args))
#endif

// -- messenger -------------------------------------------------------------------------------------------------------------

#define CEPHSHIM_CALL_ARGS CEPHSHIM_ARGS(int, fd_number, int64_t, size)
// mtype, tid, seq, nmsg: always 0; the messages of a call are events of their own
#define CEPHSHIM_NO_MESSAGE                                                                                            \
    lttng_ust_field_integer(uint16_t, mtype, 0)                                                                        \
    lttng_ust_field_integer(uint64_t, tid, 0)                                                                          \
    lttng_ust_field_integer(uint64_t, seq, 0)                                                                          \
    lttng_ust_field_integer(int, nmsg, 0)

CEPHSHIM_EVENT(msgr_send_enter, CEPHSHIM_CALL_ARGS,
    CEPHSHIM_FIELDS(
        lttng_ust_field_integer(int, fd, fd_number)
        lttng_ust_field_integer(uint64_t, bytes, (uint64_t)size)
        CEPHSHIM_NO_MESSAGE))
CEPHSHIM_EVENT(msgr_send_exit, CEPHSHIM_CALL_ARGS,
    CEPHSHIM_FIELDS(
        lttng_ust_field_integer(int, fd, fd_number)
        lttng_ust_field_integer(int64_t, ret, size)))
CEPHSHIM_EVENT(msgr_recv, CEPHSHIM_CALL_ARGS,
    CEPHSHIM_FIELDS(
        lttng_ust_field_integer(int, fd, fd_number)
        lttng_ust_field_integer(int64_t, ret, size)
        CEPHSHIM_NO_MESSAGE))
CEPHSHIM_EVENT(msgr_epoll_return, CEPHSHIM_ARGS(int, epoll_fd, int, ready),
    CEPHSHIM_FIELDS(
        lttng_ust_field_integer(int, epfd, epoll_fd)
        lttng_ust_field_integer(int, n, ready)))

#define CEPHSHIM_MESSAGE_ARGS CEPHSHIM_ARGS(int, fd_number, const struct msgr_message *, m, uint64_t, client, int, complete)
CEPHSHIM_CLASS(msgr_message, CEPHSHIM_MESSAGE_ARGS,
    CEPHSHIM_FIELDS(
        lttng_ust_field_integer(int, fd, fd_number)
        lttng_ust_field_integer(uint16_t, mtype, m->type)
        lttng_ust_field_integer(uint64_t, tid, m->tid)
        lttng_ust_field_integer(uint64_t, seq, m->seq)
        lttng_ust_field_integer(uint32_t, flen, m->flen)
        lttng_ust_field_integer(int, whole, complete)
        lttng_ust_field_integer(uint64_t, num, m->client ? m->client : client)
        lttng_ust_field_integer(uint16_t, op, m->op)
        lttng_ust_field_integer(uint64_t, off, m->offset)
        lttng_ust_field_integer(uint64_t, len, m->length)
        lttng_ust_field_string(oid, m->object)
        lttng_ust_field_integer(uint64_t, ctid, m->client_tid)))
CEPHSHIM_INSTANCE(msgr_message, msgr_tx_msg, CEPHSHIM_MESSAGE_ARGS)
CEPHSHIM_INSTANCE(msgr_message, msgr_rx_msg, CEPHSHIM_MESSAGE_ARGS)

CEPHSHIM_EVENT(msgr_connect,
    CEPHSHIM_ARGS(int, fd_number, int, direction, uint32_t, local, uint32_t, remote),
    CEPHSHIM_FIELDS(
        lttng_ust_field_integer(int, fd, fd_number)
        lttng_ust_field_integer(int, dir, direction)
        lttng_ust_field_integer(uint32_t, lport, local)
        lttng_ust_field_integer(uint32_t, rport, remote)))
CEPHSHIM_EVENT(msgr_session,
    CEPHSHIM_ARGS(int, fd_number, uint64_t, client, uint32_t, local, uint32_t, remote, int, is_rev1, int, mode),
    CEPHSHIM_FIELDS(
        lttng_ust_field_integer(int, fd, fd_number)
        lttng_ust_field_integer(uint64_t, num, client)
        lttng_ust_field_integer(uint32_t, lport, local)
        lttng_ust_field_integer(uint32_t, rport, remote)
        lttng_ust_field_integer(int, rev1, is_rev1)
        lttng_ust_field_integer(int, con_mode, mode)))
CEPHSHIM_EVENT(msgr_unreadable, CEPHSHIM_ARGS(int, fd_number, int, direction, const char *, why),
    CEPHSHIM_FIELDS(
        lttng_ust_field_integer(int, fd, fd_number)
        lttng_ust_field_integer(int, dir, direction)
        lttng_ust_field_string(reason, why)))

// -- disk ------------------------------------------------------------------------------------------------------------------

#define CEPHSHIM_SUBMIT_ARGS                                                                                           \
    CEPHSHIM_ARGS(uint64_t, request, int, fd_number, int, opcode, uint64_t, offset, uint64_t, length, int, index, int, count)
#define CEPHSHIM_SUBMIT_FIELDS                                                                                         \
    lttng_ust_field_integer(int, fd, fd_number)                                                                        \
    lttng_ust_field_integer(int, op, opcode)                                                                           \
    lttng_ust_field_integer(uint64_t, off, offset)                                                                     \
    lttng_ust_field_integer(uint64_t, len, length)                                                                     \
    lttng_ust_field_integer(int, i, index)                                                                             \
    lttng_ust_field_integer(int, nr, count)
CEPHSHIM_EVENT(aio_submit, CEPHSHIM_SUBMIT_ARGS,
    CEPHSHIM_FIELDS(lttng_ust_field_integer_hex(uint64_t, iocb, request) CEPHSHIM_SUBMIT_FIELDS))
CEPHSHIM_EVENT(aio_submit_exit, CEPHSHIM_ARGS(int, result),
    CEPHSHIM_FIELDS(lttng_ust_field_integer(int, ret, result)))
CEPHSHIM_EVENT(aio_complete, CEPHSHIM_ARGS(uint64_t, request, int64_t, result),
    CEPHSHIM_FIELDS(
        lttng_ust_field_integer_hex(uint64_t, iocb, request)
        lttng_ust_field_integer(int64_t, res, result)))
CEPHSHIM_EVENT(uring_submit, CEPHSHIM_SUBMIT_ARGS,
    CEPHSHIM_FIELDS(lttng_ust_field_integer_hex(uint64_t, user_data, request) CEPHSHIM_SUBMIT_FIELDS))
CEPHSHIM_EVENT(uring_submit_exit, CEPHSHIM_ARGS(int, result),
    CEPHSHIM_FIELDS(lttng_ust_field_integer(int, ret, result)))
CEPHSHIM_EVENT(uring_complete, CEPHSHIM_ARGS(uint64_t, request, int64_t, result),
    CEPHSHIM_FIELDS(
        lttng_ust_field_integer_hex(uint64_t, user_data, request)
        lttng_ust_field_integer(int64_t, res, result)))

#define CEPHSHIM_RANGE_ARGS CEPHSHIM_ARGS(int, fd_number, uint64_t, offset, uint64_t, length)
CEPHSHIM_CLASS(sysio_range, CEPHSHIM_RANGE_ARGS,
    CEPHSHIM_FIELDS(
        lttng_ust_field_integer(int, fd, fd_number)
        lttng_ust_field_integer(uint64_t, off, offset)
        lttng_ust_field_integer(uint64_t, len, length)))
CEPHSHIM_INSTANCE(sysio_range, sysio_pwrite_enter, CEPHSHIM_RANGE_ARGS)
CEPHSHIM_INSTANCE(sysio_range, sysio_pread_enter, CEPHSHIM_RANGE_ARGS)
CEPHSHIM_INSTANCE(sysio_range, sysio_sfr_enter, CEPHSHIM_RANGE_ARGS)

#define CEPHSHIM_BYTES_ARGS CEPHSHIM_ARGS(int, fd_number, int64_t, result)
CEPHSHIM_CLASS(sysio_bytes, CEPHSHIM_BYTES_ARGS,
    CEPHSHIM_FIELDS(
        lttng_ust_field_integer(int, fd, fd_number)
        lttng_ust_field_integer(int64_t, ret, result)))
CEPHSHIM_INSTANCE(sysio_bytes, sysio_pwrite_exit, CEPHSHIM_BYTES_ARGS)
CEPHSHIM_INSTANCE(sysio_bytes, sysio_pread_exit, CEPHSHIM_BYTES_ARGS)

#define CEPHSHIM_FD_ARGS CEPHSHIM_ARGS(int, fd_number)
CEPHSHIM_CLASS(sysio_fd, CEPHSHIM_FD_ARGS,
    CEPHSHIM_FIELDS(lttng_ust_field_integer(int, fd, fd_number)))
CEPHSHIM_INSTANCE(sysio_fd, sysio_fdatasync_enter, CEPHSHIM_FD_ARGS)
CEPHSHIM_INSTANCE(sysio_fd, sysio_fsync_enter, CEPHSHIM_FD_ARGS)

#define CEPHSHIM_STATUS_ARGS CEPHSHIM_ARGS(int, fd_number, int, result)
CEPHSHIM_CLASS(sysio_status, CEPHSHIM_STATUS_ARGS,
    CEPHSHIM_FIELDS(
        lttng_ust_field_integer(int, fd, fd_number)
        lttng_ust_field_integer(int, ret, result)))
CEPHSHIM_INSTANCE(sysio_status, sysio_fdatasync_exit, CEPHSHIM_STATUS_ARGS)
CEPHSHIM_INSTANCE(sysio_status, sysio_fsync_exit, CEPHSHIM_STATUS_ARGS)
CEPHSHIM_INSTANCE(sysio_status, sysio_sfr_exit, CEPHSHIM_STATUS_ARGS)

// -- librados --------------------------------------------------------------------------------------------------------------

CEPHSHIM_EVENT(radoscxx_aio_operate_enter, CEPHSHIM_ARGS(const char *, object, const void *, handle),
    CEPHSHIM_FIELDS(
        lttng_ust_field_string(oid, object)
        lttng_ust_field_integer_hex(uint64_t, completion, (uintptr_t)handle)))
#define CEPHSHIM_HANDLE_ARGS CEPHSHIM_ARGS(const void *, handle)
#define CEPHSHIM_HANDLE_RESULT_ARGS CEPHSHIM_ARGS(const void *, handle, int, result)
CEPHSHIM_CLASS(rados_handle, CEPHSHIM_HANDLE_ARGS,
    CEPHSHIM_FIELDS(lttng_ust_field_integer_hex(uint64_t, completion, (uintptr_t)handle)))
CEPHSHIM_CLASS(rados_handle_result, CEPHSHIM_HANDLE_RESULT_ARGS,
    CEPHSHIM_FIELDS(
        lttng_ust_field_integer_hex(uint64_t, completion, (uintptr_t)handle)
        lttng_ust_field_integer(int, ret, result)))
CEPHSHIM_INSTANCE(rados_handle_result, radoscxx_aio_operate_exit, CEPHSHIM_HANDLE_RESULT_ARGS)
CEPHSHIM_INSTANCE(rados_handle_result, radoscxx_get_return_value, CEPHSHIM_HANDLE_RESULT_ARGS)
CEPHSHIM_INSTANCE(rados_handle_result, rados_aio_exit, CEPHSHIM_HANDLE_RESULT_ARGS)
CEPHSHIM_INSTANCE(rados_handle_result, rados_get_return_value, CEPHSHIM_HANDLE_RESULT_ARGS)
CEPHSHIM_INSTANCE(rados_handle, radoscxx_wait_enter, CEPHSHIM_HANDLE_ARGS)
CEPHSHIM_INSTANCE(rados_handle, radoscxx_wait_exit, CEPHSHIM_HANDLE_ARGS)
CEPHSHIM_INSTANCE(rados_handle, rados_wait_enter, CEPHSHIM_HANDLE_ARGS)
CEPHSHIM_INSTANCE(rados_handle, rados_wait_exit, CEPHSHIM_HANDLE_ARGS)
CEPHSHIM_INSTANCE(rados_handle, rados_release, CEPHSHIM_HANDLE_ARGS)

CEPHSHIM_EVENT(radoscxx_completion_cb, CEPHSHIM_ARGS(const void *, handle, const void *, argument),
    CEPHSHIM_FIELDS(
        lttng_ust_field_integer_hex(uint64_t, arg, (uintptr_t)argument)
        lttng_ust_field_integer_hex(uint64_t, completion, (uintptr_t)handle)))
CEPHSHIM_EVENT(rados_completion_cb, CEPHSHIM_ARGS(const void *, handle, const void *, argument),
    CEPHSHIM_FIELDS(
        lttng_ust_field_integer_hex(uint64_t, arg, (uintptr_t)argument)
        lttng_ust_field_integer_hex(uint64_t, completion, (uintptr_t)handle)))

CEPHSHIM_EVENT(rados_aio_enter,
    CEPHSHIM_ARGS(const char *, name, const char *, object, const void *, handle, uint64_t, offset, uint64_t, length),
    CEPHSHIM_FIELDS(
        lttng_ust_field_string(call, name)
        lttng_ust_field_string(oid, object)
        lttng_ust_field_integer_hex(uint64_t, completion, (uintptr_t)handle)
        lttng_ust_field_integer(uint64_t, off, offset)
        lttng_ust_field_integer(uint64_t, len, length)))
CEPHSHIM_EVENT(rados_sync_enter,
    CEPHSHIM_ARGS(const char *, name, const char *, object, uint64_t, offset, uint64_t, length),
    CEPHSHIM_FIELDS(
        lttng_ust_field_string(call, name)
        lttng_ust_field_string(oid, object)
        lttng_ust_field_integer(uint64_t, off, offset)
        lttng_ust_field_integer(uint64_t, len, length)))
CEPHSHIM_EVENT(rados_sync_exit, CEPHSHIM_ARGS(const char *, name, const char *, object, int, result),
    CEPHSHIM_FIELDS(
        lttng_ust_field_string(call, name)
        lttng_ust_field_string(oid, object)
        lttng_ust_field_integer(int, ret, result)))

#ifdef CEPHSHIM_OF_RING
// Records that are missing: `how_many` of that thread, since its last event. `reason` "ring": its ring was full; "killed": its process ended while it
// wrote one; "broken": what was in the ring was no record.
CEPHSHIM_EVENT(lost, CEPHSHIM_ARGS(uint64_t, how_many, const char *, why),
    CEPHSHIM_FIELDS(
        lttng_ust_field_integer(uint64_t, count, how_many)
        lttng_ust_field_string(reason, why)))
#endif

#endif

#include <lttng/tracepoint-event.h>
