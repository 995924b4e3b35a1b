// SPDX-License-Identifier: MIT
// liburing, as far as it is functions: requests before they are submitted, completions that a function hands out. A
// program that reads the completion ring by itself (liburing's inline functions do, when something is there) is seen to
// submit only.
#include <linux/io_uring.h>
#include <signal.h>
#include <sys/uio.h>

#include "shim.h"

// The head of struct io_uring, the same in liburing 2.0 to 2.9.
struct ring {
    unsigned *sq_head, *sq_tail, *sq_mask, *sq_entries, *sq_flags, *sq_dropped, *sq_array;
    struct io_uring_sqe *sqes;
    unsigned sqe_head, sqe_tail;  // requests that are prepared and not yet submitted
    size_t sq_bytes;
    void *sq_at;
    unsigned sq_pad[4];
    unsigned *cq[6];
    struct io_uring_cqe *cqes;
    size_t cq_bytes;
    void *cq_at;
    unsigned cq_pad[4];
    unsigned flags;
};

enum { DOUBLE_REQUESTS = 1 << 10 };  // IORING_SETUP_SQE128

#define LIBURING(result, name, parameters) REAL_IN("liburing.so.2", NULL, result, name, parameters)

static uint64_t request_bytes(const struct io_uring_sqe *sqe) {
    if (sqe->opcode != IORING_OP_READV && sqe->opcode != IORING_OP_WRITEV) return sqe->len;
    const struct iovec *iov = (const struct iovec *)(uintptr_t)sqe->addr;
    uint64_t bytes = 0;
    for (unsigned i = 0; i < sqe->len; i++) bytes += iov[i].iov_len;
    return bytes;
}

// Some of these functions call others of them through the same names.
static __thread int depth __attribute__((tls_model("initial-exec")));

static void submits(const struct ring *ring) {
    if (!TRACING(uring_submit) || depth) return;
    unsigned mask = *ring->sq_mask, count = ring->sqe_tail - ring->sqe_head;
    for (unsigned i = 0; i < count; i++) {
        unsigned at = (ring->sqe_head + i) & mask;
        const struct io_uring_sqe *sqe = &ring->sqes[ring->flags & DOUBLE_REQUESTS ? 2 * at : at];
        TRACE(uring_submit, sqe->user_data, sqe->fd, sqe->opcode, sqe->off, request_bytes(sqe), (int)i, (int)count);
    }
}

static void completed(const struct io_uring_cqe *cqe) {
    if (cqe && !depth) TRACE(uring_complete, cqe->user_data, (int64_t)cqe->res);
}

#define SUBMIT(name, parameters, given)                                                                                \
    LIBURING(int, name, parameters)                                                                                    \
    EXPORT int name parameters {                                                                                       \
        submits(ring);                                                                                                 \
        depth++;                                                                                                       \
        int result = real_##name() given;                                                                              \
        depth--;                                                                                                       \
        TRACE(uring_submit_exit, result);                                                                              \
        return result;                                                                                                 \
    }
SUBMIT(io_uring_submit, (struct ring * ring), (ring))
SUBMIT(io_uring_submit_and_wait, (struct ring * ring, unsigned least), (ring, least))
SUBMIT(io_uring_submit_and_get_events, (struct ring * ring), (ring))

// Before kernel 5.11 a wait with a timeout submits what is prepared; those requests are not seen.
#define WAIT(name, parameters, given)                                                                                  \
    LIBURING(int, name, parameters)                                                                                    \
    EXPORT int name parameters {                                                                                       \
        depth++;                                                                                                       \
        int result = real_##name() given;                                                                              \
        depth--;                                                                                                       \
        if (result >= 0) completed(*cqe);                                                                              \
        return result;                                                                                                 \
    }
WAIT(io_uring_wait_cqes,
     (struct ring * ring, struct io_uring_cqe **cqe, unsigned least, struct __kernel_timespec *timeout, sigset_t *mask),
     (ring, cqe, least, timeout, mask))
WAIT(io_uring_wait_cqe_timeout, (struct ring * ring, struct io_uring_cqe **cqe, struct __kernel_timespec *timeout),
     (ring, cqe, timeout))

LIBURING(int, io_uring_submit_and_wait_timeout,
         (struct ring *, struct io_uring_cqe **, unsigned, struct __kernel_timespec *, sigset_t *))
EXPORT int io_uring_submit_and_wait_timeout(struct ring *ring, struct io_uring_cqe **cqe, unsigned least,
                                            struct __kernel_timespec *timeout, sigset_t *mask) {
    submits(ring);
    depth++;
    int result = real_io_uring_submit_and_wait_timeout()(ring, cqe, least, timeout, mask);
    depth--;
    TRACE(uring_submit_exit, result);
    if (result >= 0) completed(*cqe);
    return result;
}

LIBURING(int, __io_uring_get_cqe, (struct ring *, struct io_uring_cqe **, unsigned, unsigned, sigset_t *))
EXPORT int __io_uring_get_cqe(struct ring *ring, struct io_uring_cqe **cqe, unsigned submit, unsigned least,
                              sigset_t *mask) {
    if (submit) submits(ring);
    depth++;
    int result = real___io_uring_get_cqe()(ring, cqe, submit, least, mask);
    depth--;
    if (result >= 0) completed(*cqe);
    return result;
}

LIBURING(unsigned, io_uring_peek_batch_cqe, (struct ring *, struct io_uring_cqe **, unsigned))
EXPORT unsigned io_uring_peek_batch_cqe(struct ring *ring, struct io_uring_cqe **cqes, unsigned most) {
    unsigned result = real_io_uring_peek_batch_cqe()(ring, cqes, most);
    for (unsigned i = 0; i < result; i++) completed(cqes[i]);
    return result;
}
