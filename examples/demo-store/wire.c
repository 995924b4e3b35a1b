/* SPDX-License-Identifier: MIT */
#include "wire.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>

socklen_t wire_address(struct sockaddr_un *addr, const char *path) {
    size_t length = strlen(path);

    if (!length || length >= sizeof addr->sun_path) return 0;
    memset(addr, 0, sizeof *addr);
    addr->sun_family = AF_UNIX;
    memcpy(addr->sun_path, path, length);
    if (path[0] == '@') addr->sun_path[0] = 0;
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + (path[0] != '@'));
}

int wire_send(int fd, const struct wire_header *h, const void *payload) {
    struct iovec iov[2] = {{(void *)(uintptr_t)h, sizeof *h}, {(void *)(uintptr_t)payload, h->payload}};
    struct msghdr msg = {.msg_iov = iov, .msg_iovlen = h->payload ? 2 : 1};

    while (msg.msg_iovlen) {
        ssize_t n = sendmsg(fd, &msg, MSG_NOSIGNAL);
        if (n < 0) {
            if (errno == EINTR) continue;
            return -errno;
        }
        while (msg.msg_iovlen && (size_t)n >= msg.msg_iov->iov_len) {
            n -= (ssize_t)msg.msg_iov->iov_len;
            msg.msg_iov++;
            msg.msg_iovlen--;
        }
        if (msg.msg_iovlen) {
            msg.msg_iov->iov_base = (char *)msg.msg_iov->iov_base + n;
            msg.msg_iov->iov_len -= (size_t)n;
        }
    }
    return 0;
}

int wire_recv(int fd, void *buf, size_t size) {
    while (size) {
        ssize_t n = recv(fd, buf, size, MSG_WAITALL);
        if (n == 0) return -ECONNRESET;
        if (n < 0) {
            if (errno == EINTR) continue;
            return -errno;
        }
        buf = (char *)buf + n;
        size -= (size_t)n;
    }
    return 0;
}
