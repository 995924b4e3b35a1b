// SPDX-License-Identifier: MIT
// The two ends of a connection of peers.c, and a thread that sends and receives by every call there is. Standard
// output's check sum and the log's lines `C` (a call each) are made here.
#pragma once
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "wire.h"

static FILE *log_file;

#define SAY(...) (fprintf(log_file, __VA_ARGS__))

static void must(bool ok, const char *what) {
    if (!ok) perror(what), abort();
}

struct worker {
    uint64_t random;  // what is sent: the same in every run
    uint64_t cuts;    // how it is cut: that depends on what the kernel takes
    uint64_t sum;
    int names;
    int listener;
    struct sockaddr_in address;
    pthread_t thread;
};

static uint64_t next(uint64_t *state, uint64_t below) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (*state >> 11) % below;
}
static uint64_t draw(struct worker *w, uint64_t below) { return next(&w->random, below); }
static uint64_t chance(struct worker *w, uint64_t below) { return next(&w->cuts, below); }

// What was received and returned goes into the check sum.
static void note(struct worker *w, const void *data, size_t n) {
    const uint8_t *p = data;
    while (n--) w->sum = (w->sum ^ *p++) * 0x100000001b3u;
}
static void noted(struct worker *w, int result) { note(w, &result, sizeof result); }

// One end of a connection. Its stream's bytes are numbered from 0 in each direction.
struct end {
    int fd, twin;  // twin: the same by another number, or -1
    int name;      // in the log, unique
    uint64_t sent, received;
    bool whole;  // of the first call: nothing is cut
};

static int pick(struct worker *w, struct end *e) { return e->twin >= 0 && chance(w, 2) ? e->twin : e->fd; }

static void await(int fd, short what) {
    struct pollfd p = {fd, what, 0};
    poll(&p, 1, 1000);
}

// Cuts [p, p + n) into a vector at random places.
static int cut(struct worker *w, struct iovec *iov, int most, uint8_t *p, size_t n) {
    int count = 0;
    while (n > 0 && count < most - 1) {
        size_t part = chance(w, 4) ? chance(w, 200) : chance(w, n + 1);  // empty ones too
        if (part > n) part = n;
        iov[count++] = (struct iovec){p, part};
        p += part;
        n -= part;
    }
    iov[count++] = (struct iovec){p, n};
    return count;
}

// Offers n bytes by some call; what the kernel took.
static ssize_t send_some(struct worker *w, struct end *e, uint8_t *p, size_t n) {
    struct iovec iov[9];
    int fd = pick(w, e), call = e->whole ? 2 : (int)chance(w, 5), count = cut(w, iov, 9, p, n);
    struct msghdr message = {.msg_iov = iov, .msg_iovlen = (size_t)count};
    errno = 0;
    ssize_t sent = call == 0   ? sendmsg(fd, &message, MSG_NOSIGNAL)
                   : call == 1 ? writev(fd, iov, count)
                   : call == 2 ? write(fd, p, n)
                   : call == 3 ? send(fd, p, n, MSG_NOSIGNAL)
                               : sendto(fd, p, n, MSG_NOSIGNAL, NULL, 0);
    must(sent >= 0 || errno == EAGAIN || errno == EINTR, "send");
    // thread, direction, end, descriptor, offset, offered, taken
    SAY("C %d tx %d %d %llu %zu %zd\n", gettid(), e->name, fd, (unsigned long long)e->sent, n, sent);
    if (sent > 0) e->sent += (uint64_t)sent;
    return sent;
}

// Takes exactly n bytes, which are there or on their way, in pieces.
static void receive_all(struct worker *w, struct end *e, size_t n) {
    static __thread uint8_t room[1 << 17];
    size_t done = 0;
    while (done < n) {
        struct iovec iov[9];
        size_t left = n - done < sizeof room ? n - done : sizeof room, want = chance(w, 3) ? chance(w, left) + 1 : left;
        if (want > 70 && chance(w, 3) == 0) want = chance(w, 70) + 1;
        if (e->whole) want = left;
        int fd = pick(w, e), call = e->whole ? 1 : (int)chance(w, 6), count = cut(w, iov, 9, room, want);
        if (call == 5) (void)!recv(fd, room, want, MSG_PEEK);
        struct msghdr message = {.msg_iov = iov, .msg_iovlen = (size_t)count};
        errno = 0;
        ssize_t got = call == 0   ? recvmsg(fd, &message, 0)
                      : call == 1 ? recv(fd, room, want, 0)
                      : call == 2 ? readv(fd, iov, count)
                      : call == 3 ? recvfrom(fd, room, want, 0, NULL, NULL)
                                  : read(fd, room, want);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
            await(fd, POLLIN);
            continue;
        }
        must(got > 0, "receive");
        SAY("C %d rx %d %d %llu %zu %zd\n", gettid(), e->name, fd, (unsigned long long)e->received, want, got);
        note(w, room, (size_t)got);
        e->received += (uint64_t)got;
        done += (size_t)got;
    }
}

// Everything in b, in pieces of the sender's choice; with `to` the same thread receives each piece in pieces of its
// own.
static void transfer(struct worker *w, struct end *from, struct end *to, struct bytes *b) {
    size_t done = 0;
    while (done < b->n) {
        size_t left = b->n - done, piece = chance(w, 3) ? chance(w, left) + 1 : left;
        if (chance(w, 4) == 0 && piece > 90) piece = chance(w, 90) + 1;
        if (from->whole) piece = left;
        ssize_t taken = send_some(w, from, b->p + done, piece);
        if (taken > 0) {
            if (to) receive_all(w, to, (size_t)taken);
            done += (size_t)taken;
        } else {
            await(from->fd, POLLOUT);
        }
    }
    b->n = 0;
}

enum kind { TCP, UNIX };

static void open_pair(struct worker *w, enum kind kind, struct end *client, struct end *server) {
    int ends[2], small = 6000, on = 1;
    if (kind == TCP) {
        ends[0] = socket(AF_INET, SOCK_STREAM, 0);
        must(ends[0] >= 0, "socket");
        if (draw(w, 3) == 0) fcntl(ends[0], F_SETFL, O_NONBLOCK);
        errno = 0;
        must(connect(ends[0], (struct sockaddr *)&w->address, sizeof w->address) == 0 || errno == EINPROGRESS,
             "connect");
        struct sockaddr_in peer;
        socklen_t length = sizeof peer;
        ends[1] =
            draw(w, 2) ? accept(w->listener, (struct sockaddr *)&peer, &length) : accept4(w->listener, NULL, NULL, 0);
        must(ends[1] >= 0, "accept");
    } else {
        must(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
    }
    for (int i = 0; i < 2; i++) {
        struct end *e = i ? server : client;
        *e = (struct end){ends[i], -1, w->names++, 0, 0, false};
        // the kernel takes what fits and no more: sends are refused and cut short
        setsockopt(e->fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
        setsockopt(e->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        fcntl(e->fd, F_SETFL, O_NONBLOCK);
    }
}

static void shut(struct worker *w, struct end *e) {
    noted(w, close(e->fd));
    if (e->twin >= 0) noted(w, close(e->twin));
}
