// SPDX-License-Identifier: MIT
// The UST provider `cephshim`: what README.md lists, event by event. Names, types and order of the fields are part of the interface: op models
// and recorded traces have them. New fields go to the end.

#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER cephshim

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./cephshim_tp.h"

#if !defined(OPLINE_CEPHSHIM_TP_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define OPLINE_CEPHSHIM_TP_H

#include <lttng/tracepoint.h>
#include <stdint.h>

#include "msgr.h"

// -- messenger -------------------------------------------------------------------------------------------------------------

#define CEPHSHIM_CALL_ARGS LTTNG_UST_TP_ARGS(int, fd_number, int64_t, size)
// mtype, tid, seq, nmsg: always 0; the messages of a call are events of their own
#define CEPHSHIM_NO_MESSAGE                                                                                            \
    lttng_ust_field_integer(uint16_t, mtype, 0)                                                                        \
    lttng_ust_field_integer(uint64_t, tid, 0)                                                                          \
    lttng_ust_field_integer(uint64_t, seq, 0)                                                                          \
    lttng_ust_field_integer(int, nmsg, 0)

LTTNG_UST_TRACEPOINT_EVENT(cephshim, msgr_send_enter, CEPHSHIM_CALL_ARGS,
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(int, fd, fd_number)
        lttng_ust_field_integer(uint64_t, bytes, (uint64_t)size)
        CEPHSHIM_NO_MESSAGE))
LTTNG_UST_TRACEPOINT_EVENT(cephshim, msgr_send_exit, CEPHSHIM_CALL_ARGS,
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(int, fd, fd_number)
        lttng_ust_field_integer(int64_t, ret, size)))
LTTNG_UST_TRACEPOINT_EVENT(cephshim, msgr_recv, CEPHSHIM_CALL_ARGS,
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(int, fd, fd_number)
        lttng_ust_field_integer(int64_t, ret, size)
        CEPHSHIM_NO_MESSAGE))
LTTNG_UST_TRACEPOINT_EVENT(cephshim, msgr_epoll_return, LTTNG_UST_TP_ARGS(int, epoll_fd, int, ready),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(int, epfd, epoll_fd)
        lttng_ust_field_integer(int, n, ready)))

#define CEPHSHIM_MESSAGE_ARGS LTTNG_UST_TP_ARGS(int, fd_number, const struct msgr_message *, m, uint64_t, client, int, complete)
LTTNG_UST_TRACEPOINT_EVENT_CLASS(cephshim, msgr_message, CEPHSHIM_MESSAGE_ARGS,
    LTTNG_UST_TP_FIELDS(
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
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(cephshim, msgr_message, cephshim, msgr_tx_msg, CEPHSHIM_MESSAGE_ARGS)
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(cephshim, msgr_message, cephshim, msgr_rx_msg, CEPHSHIM_MESSAGE_ARGS)

LTTNG_UST_TRACEPOINT_EVENT(cephshim, msgr_connect,
    LTTNG_UST_TP_ARGS(int, fd_number, int, direction, uint32_t, local, uint32_t, remote),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(int, fd, fd_number)
        lttng_ust_field_integer(int, dir, direction)
        lttng_ust_field_integer(uint32_t, lport, local)
        lttng_ust_field_integer(uint32_t, rport, remote)))
LTTNG_UST_TRACEPOINT_EVENT(cephshim, msgr_session,
    LTTNG_UST_TP_ARGS(int, fd_number, uint64_t, client, uint32_t, local, uint32_t, remote, int, is_rev1, int, mode),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(int, fd, fd_number)
        lttng_ust_field_integer(uint64_t, num, client)
        lttng_ust_field_integer(uint32_t, lport, local)
        lttng_ust_field_integer(uint32_t, rport, remote)
        lttng_ust_field_integer(int, rev1, is_rev1)
        lttng_ust_field_integer(int, con_mode, mode)))
LTTNG_UST_TRACEPOINT_EVENT(cephshim, msgr_unreadable, LTTNG_UST_TP_ARGS(int, fd_number, int, direction, const char *, why),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(int, fd, fd_number)
        lttng_ust_field_integer(int, dir, direction)
        lttng_ust_field_string(reason, why)))

// -- disk ------------------------------------------------------------------------------------------------------------------

#define CEPHSHIM_SUBMIT_ARGS                                                                                           \
    LTTNG_UST_TP_ARGS(uint64_t, request, int, fd_number, int, opcode, uint64_t, offset, uint64_t, length, int, index, int, count)
#define CEPHSHIM_SUBMIT_FIELDS                                                                                         \
    lttng_ust_field_integer(int, fd, fd_number)                                                                        \
    lttng_ust_field_integer(int, op, opcode)                                                                           \
    lttng_ust_field_integer(uint64_t, off, offset)                                                                     \
    lttng_ust_field_integer(uint64_t, len, length)                                                                     \
    lttng_ust_field_integer(int, i, index)                                                                             \
    lttng_ust_field_integer(int, nr, count)
LTTNG_UST_TRACEPOINT_EVENT(cephshim, aio_submit, CEPHSHIM_SUBMIT_ARGS,
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer_hex(uint64_t, iocb, request) CEPHSHIM_SUBMIT_FIELDS))
LTTNG_UST_TRACEPOINT_EVENT(cephshim, aio_submit_exit, LTTNG_UST_TP_ARGS(int, result),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(int, ret, result)))
LTTNG_UST_TRACEPOINT_EVENT(cephshim, aio_complete, LTTNG_UST_TP_ARGS(uint64_t, request, int64_t, result),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer_hex(uint64_t, iocb, request)
        lttng_ust_field_integer(int64_t, res, result)))
LTTNG_UST_TRACEPOINT_EVENT(cephshim, uring_submit, CEPHSHIM_SUBMIT_ARGS,
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer_hex(uint64_t, user_data, request) CEPHSHIM_SUBMIT_FIELDS))
LTTNG_UST_TRACEPOINT_EVENT(cephshim, uring_submit_exit, LTTNG_UST_TP_ARGS(int, result),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(int, ret, result)))
LTTNG_UST_TRACEPOINT_EVENT(cephshim, uring_complete, LTTNG_UST_TP_ARGS(uint64_t, request, int64_t, result),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer_hex(uint64_t, user_data, request)
        lttng_ust_field_integer(int64_t, res, result)))

#define CEPHSHIM_RANGE_ARGS LTTNG_UST_TP_ARGS(int, fd_number, uint64_t, offset, uint64_t, length)
LTTNG_UST_TRACEPOINT_EVENT_CLASS(cephshim, sysio_range, CEPHSHIM_RANGE_ARGS,
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(int, fd, fd_number)
        lttng_ust_field_integer(uint64_t, off, offset)
        lttng_ust_field_integer(uint64_t, len, length)))
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(cephshim, sysio_range, cephshim, sysio_pwrite_enter, CEPHSHIM_RANGE_ARGS)
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(cephshim, sysio_range, cephshim, sysio_pread_enter, CEPHSHIM_RANGE_ARGS)
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(cephshim, sysio_range, cephshim, sysio_sfr_enter, CEPHSHIM_RANGE_ARGS)

#define CEPHSHIM_BYTES_ARGS LTTNG_UST_TP_ARGS(int, fd_number, int64_t, result)
LTTNG_UST_TRACEPOINT_EVENT_CLASS(cephshim, sysio_bytes, CEPHSHIM_BYTES_ARGS,
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(int, fd, fd_number)
        lttng_ust_field_integer(int64_t, ret, result)))
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(cephshim, sysio_bytes, cephshim, sysio_pwrite_exit, CEPHSHIM_BYTES_ARGS)
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(cephshim, sysio_bytes, cephshim, sysio_pread_exit, CEPHSHIM_BYTES_ARGS)

#define CEPHSHIM_FD_ARGS LTTNG_UST_TP_ARGS(int, fd_number)
LTTNG_UST_TRACEPOINT_EVENT_CLASS(cephshim, sysio_fd, CEPHSHIM_FD_ARGS,
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(int, fd, fd_number)))
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(cephshim, sysio_fd, cephshim, sysio_fdatasync_enter, CEPHSHIM_FD_ARGS)
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(cephshim, sysio_fd, cephshim, sysio_fsync_enter, CEPHSHIM_FD_ARGS)

#define CEPHSHIM_STATUS_ARGS LTTNG_UST_TP_ARGS(int, fd_number, int, result)
LTTNG_UST_TRACEPOINT_EVENT_CLASS(cephshim, sysio_status, CEPHSHIM_STATUS_ARGS,
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(int, fd, fd_number)
        lttng_ust_field_integer(int, ret, result)))
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(cephshim, sysio_status, cephshim, sysio_fdatasync_exit, CEPHSHIM_STATUS_ARGS)
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(cephshim, sysio_status, cephshim, sysio_fsync_exit, CEPHSHIM_STATUS_ARGS)
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(cephshim, sysio_status, cephshim, sysio_sfr_exit, CEPHSHIM_STATUS_ARGS)

// -- librados --------------------------------------------------------------------------------------------------------------

LTTNG_UST_TRACEPOINT_EVENT(cephshim, radoscxx_aio_operate_enter, LTTNG_UST_TP_ARGS(const char *, object, const void *, handle),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_string(oid, object)
        lttng_ust_field_integer_hex(uint64_t, completion, (uintptr_t)handle)))
#define CEPHSHIM_HANDLE_ARGS LTTNG_UST_TP_ARGS(const void *, handle)
#define CEPHSHIM_HANDLE_RESULT_ARGS LTTNG_UST_TP_ARGS(const void *, handle, int, result)
LTTNG_UST_TRACEPOINT_EVENT_CLASS(cephshim, rados_handle, CEPHSHIM_HANDLE_ARGS,
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer_hex(uint64_t, completion, (uintptr_t)handle)))
LTTNG_UST_TRACEPOINT_EVENT_CLASS(cephshim, rados_handle_result, CEPHSHIM_HANDLE_RESULT_ARGS,
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer_hex(uint64_t, completion, (uintptr_t)handle)
        lttng_ust_field_integer(int, ret, result)))
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(cephshim, rados_handle_result, cephshim, radoscxx_aio_operate_exit, CEPHSHIM_HANDLE_RESULT_ARGS)
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(cephshim, rados_handle_result, cephshim, radoscxx_get_return_value, CEPHSHIM_HANDLE_RESULT_ARGS)
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(cephshim, rados_handle_result, cephshim, rados_aio_exit, CEPHSHIM_HANDLE_RESULT_ARGS)
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(cephshim, rados_handle_result, cephshim, rados_get_return_value, CEPHSHIM_HANDLE_RESULT_ARGS)
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(cephshim, rados_handle, cephshim, radoscxx_wait_enter, CEPHSHIM_HANDLE_ARGS)
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(cephshim, rados_handle, cephshim, radoscxx_wait_exit, CEPHSHIM_HANDLE_ARGS)
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(cephshim, rados_handle, cephshim, rados_wait_enter, CEPHSHIM_HANDLE_ARGS)
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(cephshim, rados_handle, cephshim, rados_wait_exit, CEPHSHIM_HANDLE_ARGS)
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(cephshim, rados_handle, cephshim, rados_release, CEPHSHIM_HANDLE_ARGS)

LTTNG_UST_TRACEPOINT_EVENT(cephshim, radoscxx_completion_cb, LTTNG_UST_TP_ARGS(const void *, handle, const void *, argument),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer_hex(uint64_t, arg, (uintptr_t)argument)
        lttng_ust_field_integer_hex(uint64_t, completion, (uintptr_t)handle)))
LTTNG_UST_TRACEPOINT_EVENT(cephshim, rados_completion_cb, LTTNG_UST_TP_ARGS(const void *, handle, const void *, argument),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer_hex(uint64_t, arg, (uintptr_t)argument)
        lttng_ust_field_integer_hex(uint64_t, completion, (uintptr_t)handle)))

LTTNG_UST_TRACEPOINT_EVENT(cephshim, rados_aio_enter,
    LTTNG_UST_TP_ARGS(const char *, name, const char *, object, const void *, handle, uint64_t, offset, uint64_t, length),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_string(call, name)
        lttng_ust_field_string(oid, object)
        lttng_ust_field_integer_hex(uint64_t, completion, (uintptr_t)handle)
        lttng_ust_field_integer(uint64_t, off, offset)
        lttng_ust_field_integer(uint64_t, len, length)))
LTTNG_UST_TRACEPOINT_EVENT(cephshim, rados_sync_enter,
    LTTNG_UST_TP_ARGS(const char *, name, const char *, object, uint64_t, offset, uint64_t, length),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_string(call, name)
        lttng_ust_field_string(oid, object)
        lttng_ust_field_integer(uint64_t, off, offset)
        lttng_ust_field_integer(uint64_t, len, length)))
LTTNG_UST_TRACEPOINT_EVENT(cephshim, rados_sync_exit, LTTNG_UST_TP_ARGS(const char *, name, const char *, object, int, result),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_string(call, name)
        lttng_ust_field_string(oid, object)
        lttng_ust_field_integer(int, ret, result)))

#endif

#include <lttng/tracepoint-event.h>
