/* SPDX-License-Identifier: MIT */
#include "wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>

static bool tcp_address(struct wire_address *addr, const char *text) {
    char host[INET_ADDRSTRLEN];
    unsigned port;
    int end = 0;

    if (sscanf(text, "%15[0-9.]:%5u%n", host, &port, &end) != 2 || text[end] || port > 65535) return false;
    addr->in.sin_family = AF_INET;
    addr->in.sin_port = htons((uint16_t)port);
    addr->size = sizeof addr->in;
    return inet_pton(AF_INET, host, &addr->in.sin_addr) == 1;
}

bool wire_address(struct wire_address *addr, const char *text) {
    size_t length = strlen(text);

    memset(addr, 0, sizeof *addr);
    if (!strncmp(text, "tcp:", 4)) return tcp_address(addr, text + 4);
    if (!length || length >= sizeof addr->un.sun_path) return false;
    addr->un.sun_family = AF_UNIX;
    memcpy(addr->un.sun_path, text, length);
    if (text[0] == '@') addr->un.sun_path[0] = 0;
    addr->size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + (text[0] != '@'));
    return true;
}

int wire_socket(const struct wire_address *addr) {
    int fd = socket(addr->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

    if (fd < 0 || addr->any.sa_family != AF_INET) return fd;
    /* messages leave at once; accepted sockets inherit it */
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    return fd;
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
