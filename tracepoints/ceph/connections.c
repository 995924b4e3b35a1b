// SPDX-License-Identifier: MIT
// Events of connections: where they begin, whose they are, why they can't be read.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "shim.h"
#include "stream.h"

unsigned stream_recordings;

static uint32_t port(int fd, int (*ask)(int, struct sockaddr *, socklen_t *)) {
    struct sockaddr_storage a;
    socklen_t length = sizeof a;
    int errno_before = errno;
    int failed = ask(fd, (struct sockaddr *)&a, &length);
    errno = errno_before;
    if (failed) return 0;
    if (a.ss_family == AF_INET) return ntohs(((struct sockaddr_in *)&a)->sin_port);
    if (a.ss_family == AF_INET6) return ntohs(((struct sockaddr_in6 *)&a)->sin6_port);
    return 0;
}

static void unreadable(struct side *side, int fd, enum direction d, const char *why) {
    if (TRACING(msgr_unreadable) && !side->said) {
        side->said = true;
        TRACE(msgr_unreadable, fd, (int)d, why);
    }
}

static void say_once(int *said, int fd, const struct stream *s, const char *what) {
    if (!__atomic_exchange_n(said, 1, __ATOMIC_RELAXED)) {
        shim_say("descriptor %d (ports %u, %u): %s", fd, s->local_port, s->remote_port, what);
    }
}

static void tell_session(const struct stream *s, int fd) {
    const struct msgr_parser *tx = &s->side[TX].parser, *rx = &s->side[RX].parser;
    uint32_t mode = tx->con_mode ? tx->con_mode : rx->con_mode;
    if (mode)
        TRACE(msgr_session, fd, s->global_id, s->local_port, s->remote_port, (int)(tx->features & rx->features & 1),
              (int)mode);
}

void stream_introduce(struct stream *s, int fd, bool recording) {
    unsigned now = __atomic_load_n(&stream_recordings, __ATOMIC_RELAXED);
    if (recording != (now & 1)) {
        // another thread may see the same at once: the number it makes of it is the same
        unsigned next = now + 1;
        __atomic_compare_exchange_n(&stream_recordings, &now, next, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
        now = next;
    }
    if (!recording || s->recording == now) return;
    s->recording = now;
    for (int d = 0; d < 2; d++) {
        s->side[d].said = false;
        if (s->side[d].parser.banner) TRACE(msgr_connect, fd, d, s->local_port, s->remote_port);
    }
    tell_session(s, fd);
}

bool stream_changed(struct stream *s, int fd, enum direction d, bool banner_before, uint32_t mode_before) {
    static int said_secure, said_compressed;
    struct side *side = &s->side[d];
    struct msgr_parser *p = &side->parser;
    if (p->phase == MSGR_FOREIGN) return false;
    if (p->banner && !banner_before) {
        shim_load();
        __atomic_store_n(&s->side[!d].peer_features, p->features, __ATOMIC_RELAXED);
        s->local_port = port(fd, getsockname);
        s->remote_port = port(fd, getpeername);
        TRACE(msgr_connect, fd, (int)d, s->local_port, s->remote_port);
    }
    if (p->con_mode != mode_before) {
        s->global_id = p->global_id;
        tell_session(s, fd);
        if (p->con_mode == MSGR_SECURE) {
            // Nobody sends before it has seen AUTH_DONE or its own has gone: the other direction is between two frames.
            s->side[!d].parser.phase = MSGR_ENCRYPTED;
            s->side[!d].parser.have = 0;
            say_once(&said_secure, fd, s,
                     "secure mode: frames can't be read, their messages' tids are missing; ms_*_mode = crc shows them");
        }
    }
    if (p->phase == MSGR_ENCRYPTED) {
        unreadable(side, fd, d, "secure");
    } else if (p->phase == MSGR_LOST) {
        unreadable(side, fd, d, "lost");
    } else if (p->compressed) {
        unreadable(side, fd, d, "compressed");
        say_once(&said_compressed, fd, s,
                 "compressed frames can't be read, their messages' tids are missing; ms_osd_compress_mode = none shows "
                 "them");
    }
    return true;
}
