// SPDX-License-Identifier: MIT
// Files: pwrite, pread, fsync and their like; libaio; liburing. A request is stamped before the call that submits it.
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <signal.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "shim.h"

static uint64_t vector_bytes(const struct iovec *iov, int count) {
    uint64_t bytes = 0;
    for (int i = 0; i < count; i++) bytes += iov[i].iov_len;
    return bytes;
}

// -- reads and writes at an offset ------------------------------------------------------------------------------------

#define AROUND(kind, fd, offset, length, call)                                                                         \
    do {                                                                                                               \
        TRACE(sysio_##kind##_enter, fd, (uint64_t)(offset), length);                                                   \
        ssize_t result = call;                                                                                         \
        TRACE(sysio_##kind##_exit, fd, (int64_t)result);                                                               \
        return result;                                                                                                 \
    } while (0)
#define VECTOR_BYTES(kind, iov, count) (TRACING(sysio_##kind##_enter) ? vector_bytes(iov, count) : 0)

#define PLAIN(kind, name, data_type, offset_type)                                                                      \
    REAL(ssize_t, name, (int, data_type, size_t, offset_type))                                                         \
    EXPORT ssize_t name(int fd, data_type data, size_t bytes, offset_type offset) {                                    \
        AROUND(kind, fd, offset, bytes, real_##name()(fd, data, bytes, offset));                                       \
    }
#define VECTOR(kind, name, offset_type)                                                                                \
    REAL(ssize_t, name, (int, const struct iovec *, int, offset_type))                                                 \
    EXPORT ssize_t name(int fd, const struct iovec *iov, int count, offset_type offset) {                              \
        AROUND(kind, fd, offset, VECTOR_BYTES(kind, iov, count), real_##name()(fd, iov, count, offset));               \
    }
#define VECTOR2(kind, name, offset_type)                                                                               \
    REAL(ssize_t, name, (int, const struct iovec *, int, offset_type, int))                                            \
    EXPORT ssize_t name(int fd, const struct iovec *iov, int count, offset_type offset, int flags) {                   \
        AROUND(kind, fd, offset, VECTOR_BYTES(kind, iov, count), real_##name()(fd, iov, count, offset, flags));        \
    }
PLAIN(pwrite, pwrite, const void *, off_t)
PLAIN(pwrite, pwrite64, const void *, off64_t)
VECTOR(pwrite, pwritev, off_t)
VECTOR(pwrite, pwritev64, off64_t)
VECTOR2(pwrite, pwritev2, off_t)
VECTOR2(pwrite, pwritev64v2, off64_t)
PLAIN(pread, pread, void *, off_t)
PLAIN(pread, pread64, void *, off64_t)
VECTOR(pread, preadv, off_t)
VECTOR(pread, preadv64, off64_t)
VECTOR2(pread, preadv2, off_t)
VECTOR2(pread, preadv64v2, off64_t)

#define CHECKED(name, offset_type)                                                                                     \
    REAL(ssize_t, name, (int, void *, size_t, offset_type, size_t))                                                    \
    EXPORT ssize_t name(int fd, void *data, size_t bytes, offset_type offset, size_t room) {                           \
        AROUND(pread, fd, offset, bytes, real_##name()(fd, data, bytes, offset, room));                                \
    }
CHECKED(__pread_chk, off_t)
CHECKED(__pread64_chk, off64_t)

// -- flushes ----------------------------------------------------------------------------------------------------------

REAL(int, fdatasync, (int))
EXPORT int fdatasync(int fd) {
    TRACE(sysio_fdatasync_enter, fd);
    int result = real_fdatasync()(fd);
    TRACE(sysio_fdatasync_exit, fd, result);
    return result;
}

REAL(int, fsync, (int))
EXPORT int fsync(int fd) {
    TRACE(sysio_fsync_enter, fd);
    int result = real_fsync()(fd);
    TRACE(sysio_fsync_exit, fd, result);
    return result;
}

REAL(int, sync_file_range, (int, off64_t, off64_t, unsigned))
EXPORT int sync_file_range(int fd, off64_t offset, off64_t bytes, unsigned flags) {
    TRACE(sysio_sfr_enter, fd, (uint64_t)offset, (uint64_t)bytes);
    int result = real_sync_file_range()(fd, offset, bytes, flags);
    TRACE(sysio_sfr_exit, fd, result);
    return result;
}

// -- libaio: linux/aio_abi.h has the structures; results are negative errors, errno is not used -----------------------

#define LIBAIO(version, result, name, parameters) REAL_IN("libaio.so.1", version, result, name, parameters)

static uint64_t iocb_bytes(const struct iocb *cb) {
    bool vector = cb->aio_lio_opcode == IOCB_CMD_PREADV || cb->aio_lio_opcode == IOCB_CMD_PWRITEV;
    return vector ? vector_bytes((const struct iovec *)(uintptr_t)cb->aio_buf, (int)cb->aio_nbytes) : cb->aio_nbytes;
}

LIBAIO("LIBAIO_0.1", int, io_submit, (void *, long, struct iocb **))
EXPORT int io_submit(void *context, long count, struct iocb **list) {
    if (TRACING(aio_submit)) {
        for (long i = 0; i < count; i++) {
            const struct iocb *cb = list[i];
            TRACE(aio_submit, (uintptr_t)cb, (int)cb->aio_fildes, cb->aio_lio_opcode, (uint64_t)cb->aio_offset,
                  iocb_bytes(cb), (int)i, (int)count);
        }
    }
    int result = real_io_submit()(context, count, list);
    TRACE(aio_submit_exit, result);
    return result;
}

static int aio_reaped(int result, const struct io_event *events) {
    if (result > 0 && TRACING(aio_complete)) {
        for (int i = 0; i < result; i++) TRACE(aio_complete, events[i].obj, (int64_t)events[i].res);
    }
    return result;
}

LIBAIO("LIBAIO_0.4", int, io_getevents, (void *, long, long, struct io_event *, struct timespec *))
EXPORT int io_getevents(void *context, long least, long most, struct io_event *events, struct timespec *timeout) {
    return aio_reaped(real_io_getevents()(context, least, most, events, timeout), events);
}

LIBAIO("LIBAIO_0.5", int, io_pgetevents, (void *, long, long, struct io_event *, struct timespec *, sigset_t *))
EXPORT int io_pgetevents(void *context, long least, long most, struct io_event *events, struct timespec *timeout,
                         sigset_t *mask) {
    return aio_reaped(real_io_pgetevents()(context, least, most, events, timeout, mask), events);
}

// As net_resolve().
void disk_resolve(void) {
    (void)real_pwrite();
    (void)real_pwrite64();
    (void)real_pread();
    (void)real_pread64();
    (void)real_fdatasync();
    (void)real_fsync();
}
