// SPDX-License-Identifier: MIT
// The UST provider `syscall`: system calls as LTTng's kernel domain names them, behind the provider's name
// (syscall:syscall_entry_pread64, syscall:syscall_exit_pread64), with its fields; and in each
//
//   ktime           CLOCK_MONOTONIC ns in the kernel: the event's time
//   tid, pid, comm  the calling thread, its process (as the root PID namespace numbers them) and name: LTTng's contexts
//   file_dev, inode   where there is an fd: the file's, the number of its file system's device as the kernel has it; 0: unknown
//   pos             of calls that name no place: the file's own when the call began, its end if it is written and was opened with O_APPEND;
//                   pos, pos_l of calls that name one: what they name; of those that append the file's end, instead of -1 the file's own.
//                   -1: it has none (a pipe, a socket, a terminal), or it is not known. sendfile64, copy_file_range, splice: of the file that is written
//   cpu, seq        as in block_tp.h, of which this is a part: one stream, one order
//   iocbs           of io_submit, and of the exits of io_getevents and io_pgetevents: addresses of the iocbs that are queued, or were taken,
//                   the first 256 of them: hexadecimal numbers with commas between them, 0: it could not be read
//
//   told            of io_uring_enter: its requests that read, write or sync have events of their own: io_uring_submit_req when a thread submits
//                   one, io_uring_queue_async_work when it is handed to a worker, io_uring_work before a worker's first bio for it,
//                   io_uring_complete when its completion is there for the application
//   req, opcode     of these: the request (struct io_kiocb *), and what it does (enum io_uring_op); pos -1: it has no place; len of a vectored
//                   one: how many pieces of memory; fd -1: a file that is registered with the ring; res: bytes, or below 0 an error
//   cq_head, cq_tail  how many completions the application has taken from the ring when it calls; how many the ring has had with this one:
//                   modulo 2^32; -1: not known (before Linux 6.15)
//
// An exit has `ret`.

#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER syscall

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./call_tp.h"

#if !defined(OPLINE_CALL_TP_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define OPLINE_CALL_TP_H

#include <lttng/tracepoint.h>
#include <stdint.h>

#include <linux/types.h>

#include "block_event.h"
#include "calls.h"

#ifndef OPLINE_CALL_FIELDS
#define OPLINE_CALL_FIELDS
extern char call_iocbs[];  // of the call that is being passed on: the bridge is one thread
#define CALL_ARGS LTTNG_UST_TP_ARGS(const struct block_event *, e, uint64_t, seq_number)
#define CALL_FD                                                                                                        \
    lttng_ust_field_integer(uint32_t, fd, (uint32_t)e->args[0])                                                        \
    lttng_ust_field_integer(uint32_t, file_dev, e->dev)                                                                \
    lttng_ust_field_integer(uint64_t, inode, e->inode)
#define CALL_VEC                                                                                                       \
    CALL_FD                                                                                                            \
    lttng_ust_field_integer_hex(uint64_t, vec, e->args[1])                                                             \
    lttng_ust_field_integer(uint64_t, vlen, e->args[2])
#define CALL_POS                                                                                                       \
    lttng_ust_field_integer(uint64_t, pos_l, e->args[3])                                                               \
    lttng_ust_field_integer(uint64_t, pos_h, e->args[4])
#define CALL_OWN_POS(place) lttng_ust_field_integer(int64_t, pos, (int64_t)e->args[place])
#define CALL_BUF                                                                                                       \
    CALL_FD                                                                                                            \
    lttng_ust_field_integer_hex(uint64_t, buf, e->args[1])                                                             \
    lttng_ust_field_integer(uint64_t, count, e->args[2])
#define CALL_IOCBS lttng_ust_field_string(iocbs, call_iocbs)
#define CALL_TASK                                                                                                      \
    lttng_ust_field_integer(int32_t, tid, (int32_t)e->tid)                                                             \
    lttng_ust_field_integer(int32_t, pid, (int32_t)e->pid)                                                             \
    lttng_ust_field_array_text(char, comm, e->comm, 16)                                                                \
    lttng_ust_field_integer(uint64_t, ktime, e->ktime)                                                                 \
    lttng_ust_field_integer(uint32_t, cpu, e->cpu)                                                                     \
    lttng_ust_field_integer(uint64_t, seq, seq_number)
#define CALL_CLASS(name, ...) LTTNG_UST_TRACEPOINT_EVENT_CLASS(syscall, name, CALL_ARGS, LTTNG_UST_TP_FIELDS(__VA_ARGS__ CALL_TASK))
#endif

CALL_CLASS(nothing)
CALL_CLASS(fd, CALL_FD)
CALL_CLASS(fd_buf_count_own, CALL_BUF CALL_OWN_POS(3))
CALL_CLASS(fd_buf_count_pos, CALL_BUF lttng_ust_field_integer(int64_t, pos, (int64_t)e->args[3]))
CALL_CLASS(fd_vec_own, CALL_VEC CALL_OWN_POS(3))
CALL_CLASS(fd_vec_pos, CALL_VEC CALL_POS)
CALL_CLASS(fd_vec_pos_flags, CALL_VEC CALL_POS lttng_ust_field_integer(int32_t, flags, (int32_t)e->args[5]))
CALL_CLASS(file_range, CALL_FD
    lttng_ust_field_integer(int64_t, offset, (int64_t)e->args[1])
    lttng_ust_field_integer(int64_t, nbytes, (int64_t)e->args[2])
    lttng_ust_field_integer(uint32_t, flags, (uint32_t)e->args[3]))
CALL_CLASS(memory,
    lttng_ust_field_integer_hex(uint64_t, start, e->args[0])
    lttng_ust_field_integer(uint64_t, len, e->args[1])
    lttng_ust_field_integer(int32_t, flags, (int32_t)e->args[2]))
CALL_CLASS(aio_submit,
    lttng_ust_field_integer_hex(uint64_t, ctx_id, e->args[0])
    lttng_ust_field_integer(int64_t, nr, (int32_t)e->args[1])
    lttng_ust_field_integer_hex(uint64_t, iocbpp, e->args[2])
    lttng_ust_field_integer(uint32_t, file_dev, e->dev)
    lttng_ust_field_integer(uint64_t, inode, e->inode)
    CALL_IOCBS)
CALL_CLASS(aio_reap,
    lttng_ust_field_integer_hex(uint64_t, ctx_id, e->args[0])
    lttng_ust_field_integer(int64_t, min_nr, (int64_t)e->args[1])
    lttng_ust_field_integer(int64_t, nr, (int64_t)e->args[2])
    lttng_ust_field_integer_hex(uint64_t, events, e->args[3])
    lttng_ust_field_integer_hex(uint64_t, timeout, e->args[4]))
CALL_CLASS(uring_enter,
    lttng_ust_field_integer(uint32_t, fd, (uint32_t)e->args[0])
    lttng_ust_field_integer(uint32_t, to_submit, (uint32_t)e->args[1])
    lttng_ust_field_integer(uint32_t, min_complete, (uint32_t)e->args[2])
    lttng_ust_field_integer(uint32_t, flags, (uint32_t)e->args[3])
    lttng_ust_field_integer_hex(uint64_t, argp, e->args[4])
    lttng_ust_field_integer(uint64_t, argsz, e->args[5])
    lttng_ust_field_integer(uint8_t, told, (uint8_t)(e->old_dev & RING_TOLD))
    lttng_ust_field_integer(int64_t, cq_head, e->old_dev & RING_COUNTED ? (int64_t)e->dev : -1))
CALL_CLASS(sendfile,
    lttng_ust_field_integer(uint32_t, out_fd, (uint32_t)e->args[0])
    lttng_ust_field_integer(uint32_t, file_dev, e->dev)
    lttng_ust_field_integer(uint64_t, inode, e->inode)
    lttng_ust_field_integer(uint32_t, in_fd, (uint32_t)e->args[1])
    lttng_ust_field_integer(uint64_t, count, e->args[3])
    CALL_OWN_POS(4))
CALL_CLASS(copy_range,
    lttng_ust_field_integer(uint32_t, fd_in, (uint32_t)e->args[0])
    lttng_ust_field_integer(uint32_t, fd_out, (uint32_t)e->args[2])
    lttng_ust_field_integer(uint32_t, file_dev, e->dev)
    lttng_ust_field_integer(uint64_t, inode, e->inode)
    lttng_ust_field_integer(uint64_t, len, e->args[4])
    CALL_OWN_POS(1)
    lttng_ust_field_integer(uint32_t, flags, (uint32_t)e->args[5]))
CALL_CLASS(returned, lttng_ust_field_integer(int64_t, ret, (int64_t)e->args[0]))
CALL_CLASS(taken, lttng_ust_field_integer(int64_t, ret, (int64_t)e->args[0]) CALL_IOCBS)

CALL_CLASS(uring_request,
    lttng_ust_field_integer_hex(uint64_t, req, e->args[0])
    lttng_ust_field_integer(uint8_t, opcode, (uint8_t)e->args[3]))
CALL_CLASS(uring_submitted,
    lttng_ust_field_integer_hex(uint64_t, req, e->args[0])
    lttng_ust_field_integer(uint8_t, opcode, (uint8_t)e->args[3])
    lttng_ust_field_integer(int32_t, fd, (int32_t)e->args[4])
    lttng_ust_field_integer(uint32_t, file_dev, e->dev)
    lttng_ust_field_integer(uint64_t, inode, e->inode)
    lttng_ust_field_integer(int64_t, pos, (int64_t)e->args[1])
    lttng_ust_field_integer(uint64_t, len, e->args[2]))
CALL_CLASS(uring_completed,
    lttng_ust_field_integer_hex(uint64_t, req, e->args[0])
    lttng_ust_field_integer(uint8_t, opcode, (uint8_t)e->args[3])
    lttng_ust_field_integer(int64_t, res, (int64_t)e->args[2])
    lttng_ust_field_integer(int64_t, cq_tail, (int64_t)e->args[1]))
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(syscall, uring_submitted, syscall, io_uring_submit_req, CALL_ARGS)
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(syscall, uring_request, syscall, io_uring_queue_async_work, CALL_ARGS)
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(syscall, uring_request, syscall, io_uring_work, CALL_ARGS)
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(syscall, uring_completed, syscall, io_uring_complete, CALL_ARGS)

#define X(name, fields, result)                                                                                        \
    LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(syscall, fields, syscall, syscall_entry_##name, CALL_ARGS)                     \
    LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(syscall, result, syscall, syscall_exit_##name, CALL_ARGS)
OPLINE_CALLS(X)
#undef X

#endif

#include <lttng/tracepoint-event.h>
