// SPDX-License-Identifier: MIT
// The system calls that are recorded where no lttng-modules are: X(name, fields). Names and fields are those of
// lttng-modules 2.13 (include/instrumentation/syscalls), whose models then fit as they are; `fields` names a class of
// events in call_tp.h. Their order gives each its number, from 1; it is a bit of bridge_control.calls. First those
// whose first argument is a file's descriptor (CALLS_WITH_FILE).
#pragma once

#define OPLINE_CALLS(X)                                                                                                \
    X(read, fd_buf_count_own)                                                                                          \
    X(write, fd_buf_count_own)                                                                                         \
    X(pread64, fd_buf_count_pos)                                                                                       \
    X(pwrite64, fd_buf_count_pos)                                                                                      \
    X(readv, fd_vec_own)                                                                                               \
    X(writev, fd_vec_own)                                                                                              \
    X(preadv, fd_vec_pos)                                                                                              \
    X(pwritev, fd_vec_pos)                                                                                             \
    X(preadv2, fd_vec_pos_flags)                                                                                       \
    X(pwritev2, fd_vec_pos_flags)                                                                                      \
    X(fsync, fd)                                                                                                       \
    X(fdatasync, fd)                                                                                                   \
    X(syncfs, fd)                                                                                                      \
    X(sync_file_range, file_range)                                                                                     \
    X(sendfile64, sendfile)                                                                                            \
    X(sync, nothing)                                                                                                   \
    X(msync, memory)                                                                                                   \
    X(io_submit, aio_submit)                                                                                           \
    X(io_getevents, aio_reap)                                                                                          \
    X(io_pgetevents, aio_reap)                                                                                         \
    X(io_uring_enter, uring_enter)                                                                                     \
    X(copy_file_range, copy_range)

// clang-format off
enum opline_call {
    CALL_NONE,
#define X(name, fields) CALL_##name,
    OPLINE_CALLS(X)
#undef X
    CALL_COUNT
};
// clang-format on
