// SPDX-License-Identifier: MIT
#include "listener.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

int listen_at(const char *path) {
    struct sockaddr_un place = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof place.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy(place.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), on = 1;
    // one that nobody listens to is left over
    if (connect(fd, (struct sockaddr *)&place, sizeof place) == 0) {
        errno = EADDRINUSE;
        return -1;
    }
    unlink(path);
    if (setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) || bind(fd, (struct sockaddr *)&place, sizeof place))
        return -1;
    chmod(path, 0666);  // like the session daemon's for applications: who sends is looked at, message by message
    return fd;
}

// Descriptors of a message that is none of the shim's.
static void close_all(const struct cmsghdr *c) {
    for (size_t at = CMSG_LEN(0); at + sizeof(int) <= c->cmsg_len; at += sizeof(int)) {
        int fd;
        memcpy(&fd, (const char *)c + at, sizeof fd);
        close(fd);
    }
}

bool next_offer(int listener, struct offer *offer) {
    struct iovec iov = {&offer->version, sizeof offer->version};
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))];
    } control;
    struct msghdr message = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    *offer = (struct offer){.fd = -1, .who = {.uid = (uid_t)-1}};
    if (recvmsg(listener, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) < 0) return false;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
        if (c->cmsg_level != SOL_SOCKET) continue;
        if (c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof offer->fd))
            memcpy(&offer->fd, CMSG_DATA(c), sizeof offer->fd);
        else if (c->cmsg_type == SCM_RIGHTS) close_all(c);
        if (c->cmsg_type == SCM_CREDENTIALS && c->cmsg_len == CMSG_LEN(sizeof offer->who))
            memcpy(&offer->who, CMSG_DATA(c), sizeof offer->who);
    }
    return true;
}
