// SPDX-License-Identifier: MIT
// Sockets and what else makes, ends or duplicates a descriptor; epoll.
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "shim.h"
#include "streams.h"

// -- descriptors ------------------------------------------------------------------------------------------------------

static bool internet(const struct sockaddr *a) { return a && (a->sa_family == AF_INET || a->sa_family == AF_INET6); }

REAL(int, connect, (int, const struct sockaddr *, socklen_t))
EXPORT int connect(int fd, const struct sockaddr *address, socklen_t length) {
    int result = real_connect()(fd, address, length);
    if ((result == 0 || errno == EINPROGRESS) && internet(address)) stream_open(fd);
    return result;
}

static void accepted(int fd) {
    struct sockaddr_storage local;
    socklen_t length = sizeof local;
    int errno_before = errno;
    if (getsockname(fd, (struct sockaddr *)&local, &length) == 0 && internet((struct sockaddr *)&local)) {
        stream_open(fd);
    } else {
        stream_close(fd);
    }
    errno = errno_before;
}

REAL(int, accept, (int, struct sockaddr *, socklen_t *))
EXPORT int accept(int fd, struct sockaddr *address, socklen_t *length) {
    int result = real_accept()(fd, address, length);
    if (result >= 0) accepted(result);
    return result;
}

REAL(int, accept4, (int, struct sockaddr *, socklen_t *, int))
EXPORT int accept4(int fd, struct sockaddr *address, socklen_t *length, int flags) {
    int result = real_accept4()(fd, address, length, flags);
    if (result >= 0) accepted(result);
    return result;
}

REAL(int, socket, (int, int, int))
EXPORT int socket(int domain, int type, int protocol) {
    int result = real_socket()(domain, type, protocol);
    if (result >= 0) stream_close(result);  // closed behind our back: the number is new
    return result;
}

// Before the call: another thread may be given the number as soon as it is free.
REAL(int, close, (int))
EXPORT int close(int fd) {
    stream_close(fd);
    return real_close()(fd);
}

REAL(int, close_range, (unsigned, unsigned, int))
EXPORT int close_range(unsigned first, unsigned last, int flags) {
    enum { ONLY_AT_EXEC = 4 };  // CLOSE_RANGE_CLOEXEC
    if (!(flags & ONLY_AT_EXEC) && first <= last) stream_close_range(first, last);
    return real_close_range()(first, last, flags);
}

REAL(void, closefrom, (int))
EXPORT void closefrom(int first) {
    stream_close_range(first < 0 ? 0 : (unsigned)first, UINT_MAX);
    real_closefrom()(first);
}

REAL(int, dup, (int))
EXPORT int dup(int fd) {
    int result = real_dup()(fd);
    if (result >= 0) stream_duplicate(fd, result);
    return result;
}

REAL(int, dup2, (int, int))
EXPORT int dup2(int fd, int to) {
    int result = real_dup2()(fd, to);
    if (result >= 0) stream_duplicate(fd, result);
    return result;
}

REAL(int, dup3, (int, int, int))
EXPORT int dup3(int fd, int to, int flags) {
    int result = real_dup3()(fd, to, flags);
    if (result >= 0) stream_duplicate(fd, result);
    return result;
}

// The third argument is passed on as it came: an int, a long and a pointer travel in the same register.
static int duplicating(int result, int fd, int command) {
    if (result >= 0 && (command == F_DUPFD || command == F_DUPFD_CLOEXEC)) stream_duplicate(fd, result);
    return result;
}

#define FCNTL(name)                                                                                                    \
    REAL(int, name, (int, int, ...))                                                                                   \
    EXPORT int name(int fd, int command, ...) {                                                                        \
        va_list rest;                                                                                                  \
        va_start(rest, command);                                                                                       \
        void *argument = va_arg(rest, void *);                                                                         \
        va_end(rest);                                                                                                  \
        return duplicating(real_##name()(fd, command, argument), fd, command);                                         \
    }
FCNTL(fcntl)
FCNTL(fcntl64)

// -- sending ----------------------------------------------------------------------------------------------------------

// What is sent on other descriptors is not looked at before the system has taken it: there may be no memory behind the
// pointer.
#define SEND(fd, iov, count, call)                                                                                     \
    do {                                                                                                               \
        struct stream *stream = shim_ended ? NULL : stream_of(fd);                                                     \
        bool begun = stream && stream_begin_send(stream, fd, iov, count);                                              \
        ssize_t result = call;                                                                                         \
        if (begun) {                                                                                                   \
            stream_sent(stream, fd, iov, result);                                                                      \
        } else if (result > 0 && !stream && !shim_ended) {                                                             \
            stream_discover_sent(fd, iov, count, result);                                                              \
        }                                                                                                              \
        return result;                                                                                                 \
    } while (0)

REAL(ssize_t, sendmsg, (int, const struct msghdr *, int))
EXPORT ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
    SEND(fd, message->msg_iov, message->msg_iovlen, real_sendmsg()(fd, message, flags));
}

REAL(ssize_t, send, (int, const void *, size_t, int))
EXPORT ssize_t send(int fd, const void *data, size_t bytes, int flags) {
    struct iovec iov = {(void *)(uintptr_t)data, bytes};
    SEND(fd, &iov, 1, real_send()(fd, data, bytes, flags));
}

REAL(ssize_t, sendto, (int, const void *, size_t, int, const struct sockaddr *, socklen_t))
EXPORT ssize_t sendto(int fd, const void *data, size_t bytes, int flags, const struct sockaddr *to, socklen_t length) {
    struct iovec iov = {(void *)(uintptr_t)data, bytes};
    SEND(fd, &iov, 1, real_sendto()(fd, data, bytes, flags, to, length));
}

REAL(ssize_t, write, (int, const void *, size_t))
EXPORT ssize_t write(int fd, const void *data, size_t bytes) {
    struct iovec iov = {(void *)(uintptr_t)data, bytes};
    SEND(fd, &iov, 1, real_write()(fd, data, bytes));
}

REAL(ssize_t, writev, (int, const struct iovec *, int))
EXPORT ssize_t writev(int fd, const struct iovec *iov, int count) {
    SEND(fd, iov, count > 0 ? (size_t)count : 0, real_writev()(fd, iov, count));
}

// -- receiving --------------------------------------------------------------------------------------------------------

#define RECEIVE(fd, iov, count, consumes, call)                                                                        \
    do {                                                                                                               \
        struct stream *stream = shim_ended || !(consumes) ? NULL : stream_begin_receive(fd);                           \
        ssize_t result = call;                                                                                         \
        if (stream || (result > 0 && (consumes) && !shim_ended)) {                                                     \
            if (stream) {                                                                                              \
                stream_received(stream, fd, iov, result);                                                              \
            } else {                                                                                                   \
                stream_discover(fd, iov, count, result);                                                               \
            }                                                                                                          \
        }                                                                                                              \
        return result;                                                                                                 \
    } while (0)

// With MSG_TRUNC TCP throws the bytes away: they have passed unseen.
#define TAKES(flags) (!((flags) & (MSG_PEEK | MSG_OOB | MSG_ERRQUEUE | MSG_TRUNC)))

REAL(ssize_t, recvmsg, (int, struct msghdr *, int))
EXPORT ssize_t recvmsg(int fd, struct msghdr *message, int flags) {
    RECEIVE(fd, message->msg_iov, message->msg_iovlen, TAKES(flags), real_recvmsg()(fd, message, flags));
}

REAL(ssize_t, recv, (int, void *, size_t, int))
EXPORT ssize_t recv(int fd, void *data, size_t bytes, int flags) {
    struct iovec iov = {data, bytes};
    RECEIVE(fd, &iov, 1, TAKES(flags), real_recv()(fd, data, bytes, flags));
}

REAL(ssize_t, recvfrom, (int, void *, size_t, int, struct sockaddr *, socklen_t *))
EXPORT ssize_t recvfrom(int fd, void *data, size_t bytes, int flags, struct sockaddr *from, socklen_t *length) {
    struct iovec iov = {data, bytes};
    RECEIVE(fd, &iov, 1, TAKES(flags), real_recvfrom()(fd, data, bytes, flags, from, length));
}

REAL(ssize_t, read, (int, void *, size_t))
EXPORT ssize_t read(int fd, void *data, size_t bytes) {
    struct iovec iov = {data, bytes};
    RECEIVE(fd, &iov, 1, true, real_read()(fd, data, bytes));
}

REAL(ssize_t, readv, (int, const struct iovec *, int))
EXPORT ssize_t readv(int fd, const struct iovec *iov, int count) {
    RECEIVE(fd, iov, count > 0 ? (size_t)count : 0, true, real_readv()(fd, iov, count));
}

// What gcc makes of them with _FORTIFY_SOURCE where it knows the buffer's size.
REAL(ssize_t, __read_chk, (int, void *, size_t, size_t))
EXPORT ssize_t __read_chk(int fd, void *data, size_t bytes, size_t room) {
    struct iovec iov = {data, bytes};
    RECEIVE(fd, &iov, 1, true, real___read_chk()(fd, data, bytes, room));
}

REAL(ssize_t, __recv_chk, (int, void *, size_t, size_t, int))
EXPORT ssize_t __recv_chk(int fd, void *data, size_t bytes, size_t room, int flags) {
    struct iovec iov = {data, bytes};
    RECEIVE(fd, &iov, 1, TAKES(flags), real___recv_chk()(fd, data, bytes, room, flags));
}

REAL(ssize_t, __recvfrom_chk, (int, void *, size_t, size_t, int, struct sockaddr *, socklen_t *))
EXPORT ssize_t __recvfrom_chk(int fd, void *data, size_t bytes, size_t room, int flags, struct sockaddr *from,
                              socklen_t *length) {
    struct iovec iov = {data, bytes};
    RECEIVE(fd, &iov, 1, TAKES(flags), real___recvfrom_chk()(fd, data, bytes, room, flags, from, length));
}

// -- epoll ------------------------------------------------------------------------------------------------------------

static int woken(int epfd, int ready) {
    if (stream_worker) TRACE(msgr_epoll_return, epfd, ready);
    return ready;
}

REAL(int, epoll_wait, (int, struct epoll_event *, int, int))
EXPORT int epoll_wait(int epfd, struct epoll_event *events, int most, int timeout) {
    return woken(epfd, real_epoll_wait()(epfd, events, most, timeout));
}

REAL(int, epoll_pwait, (int, struct epoll_event *, int, int, const sigset_t *))
EXPORT int epoll_pwait(int epfd, struct epoll_event *events, int most, int timeout, const sigset_t *mask) {
    return woken(epfd, real_epoll_pwait()(epfd, events, most, timeout, mask));
}

// dlsym() would wait for a dlopen() that waits for a thread of LTTng's, which comes through here.
void net_resolve(void) {
    (void)real_connect();
    (void)real_accept();
    (void)real_accept4();
    (void)real_socket();
    (void)real_close();
    (void)real_dup();
    (void)real_dup2();
    (void)real_dup3();
    (void)real_sendmsg();
    (void)real_send();
    (void)real_sendto();
    (void)real_write();
    (void)real_writev();
    (void)real_recvmsg();
    (void)real_recv();
    (void)real_recvfrom();
    (void)real_read();
    (void)real_readv();
    (void)real___read_chk();
    (void)real___recv_chk();
    (void)real___recvfrom_chk();
    (void)real_epoll_wait();
    (void)real_epoll_pwait();
    (void)real_fcntl();
    (void)real_fcntl64();
}
