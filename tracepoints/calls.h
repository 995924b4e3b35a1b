// SPDX-License-Identifier: MIT
// The system calls that are recorded where no lttng-modules are: X(name, fields, result). Names and fields are those of
// lttng-modules 2.13 (include/instrumentation/syscalls), whose models then fit as they are; `fields` and `result` name
// classes of events in call_tp.h, of its entry and its exit. Their order gives each its number, from 1; it is a bit of
// bridge_control.calls. First those whose first argument is a file's descriptor (CALLS_WITH_FILE).
#pragma once

#define OPLINE_CALLS(X)                                                                                                \
    X(read, fd_buf_count_own, returned)                                                                                \
    X(write, fd_buf_count_own, returned)                                                                               \
    X(pread64, fd_buf_count_pos, returned)                                                                             \
    X(pwrite64, fd_buf_count_pos, returned)                                                                            \
    X(readv, fd_vec_own, returned)                                                                                     \
    X(writev, fd_vec_own, returned)                                                                                    \
    X(preadv, fd_vec_pos, returned)                                                                                    \
    X(pwritev, fd_vec_pos, returned)                                                                                   \
    X(preadv2, fd_vec_pos_flags, returned)                                                                             \
    X(pwritev2, fd_vec_pos_flags, returned)                                                                            \
    X(fsync, fd, returned)                                                                                             \
    X(fdatasync, fd, returned)                                                                                         \
    X(syncfs, fd, returned)                                                                                            \
    X(sync_file_range, file_range, returned)                                                                           \
    X(sendfile64, sendfile, returned)                                                                                  \
    X(sync, nothing, returned)                                                                                         \
    X(msync, memory, returned)                                                                                         \
    X(io_submit, aio_submit, returned)                                                                                 \
    X(io_getevents, aio_reap, taken)                                                                                   \
    X(io_pgetevents, aio_reap, taken)                                                                                  \
    X(io_uring_enter, uring_enter, returned)                                                                           \
    X(copy_file_range, copy_range, returned)                                                                           \
    X(splice, copy_range, returned)

// clang-format off
enum opline_call {
    CALL_NONE,
#define X(name, fields, result) CALL_##name,
    OPLINE_CALLS(X)
#undef X
    CALL_COUNT
};
// clang-format on
