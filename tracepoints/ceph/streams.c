// SPDX-License-Identifier: MIT
#include "streams.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "msgr.h"
#include "shim.h"

__thread bool stream_worker __attribute__((tls_model("initial-exec")));

enum direction { TX, RX };
enum { RECORD_USUAL_BYTES = 448 };  // of an OSD_OP's record

struct side {
    int busy;           // a call is in progress: two at a time have no order
    int disturbed;      // and another one came
    bool open;          // RX: a message has been reported as begun, and not yet as whole
    bool said;          // the event msgr_unreadable
    uint64_t announced; // TX: messages whose event has been written: a send that was cut short is offered again
    uint64_t announced_before;  // TX: by earlier calls
    struct msgr_parser parser;
};

struct stream {
    int descriptors;    // how many stand for it
    unsigned recording; // that it has been introduced to
    bool has_before;    // the parser is ahead: only while somebody records messages
    uint64_t global_id;
    uint32_t local_port, remote_port;
    struct stream *next_free;
    struct side side[2];
    struct msgr_parser before;  // TX: what the parser was before what is being offered, of which not all may be taken
};

// fd → stream, in chunks that are made when needed.
enum { CHUNK = 1024, CHUNKS = 1024 };
static struct stream **chunks[CHUNKS];

// Streams are never given back to the system: a thread that still holds one reads no freed memory.
static struct stream *free_streams;
static int free_lock;

static void lock(void) {
    while (__atomic_exchange_n(&free_lock, 1, __ATOMIC_ACQUIRE)) sched_yield();
}

static void unlock(void) { __atomic_store_n(&free_lock, 0, __ATOMIC_RELEASE); }

static void *pages(size_t bytes) {
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

static struct stream **slot(int fd, bool make) {
    if (fd < 0 || fd >= CHUNK * CHUNKS) return NULL;
    struct stream ***chunk = &chunks[fd / CHUNK];
    struct stream **at = __atomic_load_n(chunk, __ATOMIC_ACQUIRE);
    if (!at) {
        if (!make) return NULL;
        struct stream **fresh = pages(CHUNK * sizeof *fresh);
        if (!fresh) return NULL;
        if (__atomic_compare_exchange_n(chunk, &at, fresh, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            at = fresh;
        } else {
            munmap(fresh, CHUNK * sizeof *fresh);
        }
    }
    return &at[fd % CHUNK];
}

static struct stream *at(int fd) {
    struct stream **s = slot(fd, false);
    return s ? __atomic_load_n(s, __ATOMIC_ACQUIRE) : NULL;
}

static struct stream *make(void) {
    enum { BATCH = 16 };
    lock();
    if (!free_streams) {
        struct stream *fresh = pages(BATCH * sizeof *fresh);
        for (int i = 0; fresh && i < BATCH; i++) {
            fresh[i].next_free = free_streams;
            free_streams = &fresh[i];
        }
    }
    struct stream *s = free_streams;
    if (s) free_streams = s->next_free;
    unlock();
    if (!s) return NULL;
    for (int d = 0; d < 2; d++) {
        struct side *side = &s->side[d];
        msgr_reset(&side->parser);
        side->disturbed = 0;
        side->open = side->said = false;
        side->announced = side->announced_before = 0;
    }
    s->global_id = 0;
    s->local_port = s->remote_port = 0;
    s->descriptors = 1;
    s->recording = 0;
    return s;
}

static void release(struct stream *s) {
    if (__atomic_sub_fetch(&s->descriptors, 1, __ATOMIC_ACQ_REL) > 0) return;
    // A call that is still in progress keeps it for ever: rare, and small.
    if (__atomic_exchange_n(&s->side[TX].busy, 1, __ATOMIC_ACQUIRE)) return;
    if (__atomic_exchange_n(&s->side[RX].busy, 1, __ATOMIC_ACQUIRE)) return;
    s->side[TX].busy = s->side[RX].busy = 0;
    lock();
    s->next_free = free_streams;
    free_streams = s;
    unlock();
}

static void put(int fd, struct stream *s) {
    struct stream **where = slot(fd, s != NULL);
    struct stream *before = where ? __atomic_exchange_n(where, s, __ATOMIC_ACQ_REL) : s;
    if (before) release(before);
}

void stream_open(int fd) {
    int errno_before = errno;
    put(fd, make());
    errno = errno_before;
}

void stream_close(int fd) {
    if (at(fd)) put(fd, NULL);
}

void stream_close_range(unsigned first, unsigned last) {
    for (unsigned i = first / CHUNK; i < CHUNKS && i <= last / CHUNK; i++) {
        if (!__atomic_load_n(&chunks[i], __ATOMIC_ACQUIRE)) continue;
        for (unsigned fd = i * CHUNK; fd < (i + 1) * CHUNK; fd++) {
            if (fd >= first && fd <= last) stream_close((int)fd);
        }
    }
}

void stream_duplicate(int from, int to) {
    struct stream *s = at(from);
    if (s == at(to)) return;
    if (s) __atomic_add_fetch(&s->descriptors, 1, __ATOMIC_ACQ_REL);
    put(to, s);
}

static bool starts_with_magic(const struct iovec *iov, size_t count) {
    return count > 0 && iov[0].iov_len >= MSGR_MAGIC_BYTES && msgr_is_magic(iov[0].iov_base);
}

static bool is_stream_socket(int fd) {
    int type, errno_before = errno;
    socklen_t length = sizeof type;
    bool yes = getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) == 0 && type == SOCK_STREAM;
    errno = errno_before;
    return yes;
}

static struct stream *begin(struct stream *s, enum direction d) {
    struct side *side = &s->side[d];
    if (__atomic_exchange_n(&side->busy, 1, __ATOMIC_ACQUIRE)) {
        __atomic_store_n(&side->disturbed, 1, __ATOMIC_RELAXED);
        return NULL;
    }
    if (__builtin_expect(__atomic_load_n(&side->disturbed, __ATOMIC_RELAXED), 0)) {
        __atomic_store_n(&side->disturbed, 0, __ATOMIC_RELAXED);
        if (side->parser.phase < MSGR_ENCRYPTED) side->parser.phase = MSGR_LOST;
    }
    side->parser.peer_features = s->side[!d].parser.banner ? s->side[!d].parser.features : UINT64_MAX;
    return s;
}

static void finish(struct stream *s, enum direction d) { __atomic_store_n(&s->side[d].busy, 0, __ATOMIC_RELEASE); }

// Feeds the first `bytes` of the vector.
static void feed(struct msgr_parser *p, const struct iovec *iov, size_t count, size_t bytes, const struct msgr_sink *sink) {
    if (p->phase == MSGR_LOST && count > 0) msgr_resync(p, iov[0].iov_base, iov[0].iov_len < bytes ? iov[0].iov_len : bytes);
    for (size_t i = 0; i < count && bytes > 0; i++) {
        size_t part = iov[i].iov_len < bytes ? iov[i].iov_len : bytes;
        bytes -= part;
        msgr_feed(p, iov[i].iov_base, part, bytes, sink);
    }
}

// -- connections -----------------------------------------------------------------------------------------------------------

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
    if (mode) TRACE(msgr_session, fd, s->global_id, s->local_port, s->remote_port, (int)(tx->features & rx->features & 1), (int)mode);
}

// A recording that began after the connection did is told of it before its first message. That one recording has ended and another begun is
// seen if any messenger's call falls between them.
static void introduce(struct stream *s, int fd) {
    static unsigned recordings;  // odd: somebody records
    unsigned now = __atomic_load_n(&recordings, __ATOMIC_RELAXED);
    bool on = TRACING(msgr_connect);
    if (on != (now & 1)) {
        // another thread may see the same at once: the number it makes of it is the same
        unsigned next = now + 1;
        __atomic_compare_exchange_n(&recordings, &now, next, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
        now = next;
    }
    if (!on || s->recording == now) return;
    s->recording = now;
    for (int d = 0; d < 2; d++) {
        s->side[d].said = false;
        if (s->side[d].parser.banner) TRACE(msgr_connect, fd, d, s->local_port, s->remote_port);
    }
    tell_session(s, fd);
}

// What the bytes of a call have changed besides messages. False: it is no connection of Ceph's.
static bool after(struct stream *s, int fd, enum direction d, bool banner_before, uint32_t mode_before) {
    static int said_secure, said_compressed;
    struct side *side = &s->side[d];
    struct msgr_parser *p = &side->parser;
    if (p->phase == MSGR_FOREIGN) return false;
    if (p->banner && !banner_before) {
        shim_load();
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
            say_once(&said_secure, fd, s, "secure mode: frames can't be read, their messages' tids are missing; ms_*_mode = crc shows them");
        }
    }
    if (p->phase == MSGR_ENCRYPTED) {
        unreadable(side, fd, d, "secure");
    } else if (p->phase == MSGR_LOST) {
        unreadable(side, fd, d, "lost");
    } else if (p->compressed) {
        unreadable(side, fd, d, "compressed");
        say_once(&said_compressed, fd, s, "compressed frames can't be read, their messages' tids are missing; ms_osd_compress_mode = none shows them");
    }
    return true;
}

// -- sending ---------------------------------------------------------------------------------------------------------------

struct call {
    struct stream *stream;
    int fd;
};

static void ignore_end(void *context, const struct msgr_message *m) { (void)context; (void)m; }

// A message for LTTng-UST: looked up, in `copy`, if it was left to the collector.
struct looked { struct msgr_message message; char object[MSGR_OBJECT_BYTES]; };

static const struct msgr_message *looked(const struct msgr_message *m, struct looked *copy) {
    if (!m->front) return m;
    copy->message = *m;
    msgr_look(&copy->message, copy->object);
    return &copy->message;
}

static void offered(void *context, const struct msgr_message *m, bool whole) {
    const struct call *call = context;
    struct looked copy;
    struct stream *s = call->stream;
    (void)whole;
    if (m->index < s->side[TX].announced) return;
    s->side[TX].announced = m->index + 1;
    TRACE_BEFORE(msgr_tx_msg, m = looked(m, &copy), call->fd, m, s->global_id, 0);
}

static void ignore_begin(void *context, const struct msgr_message *m, bool whole) { (void)context; (void)m; (void)whole; }

static void taken(void *context, const struct msgr_message *m) {
    const struct call *call = context;
    if (m->index < call->stream->side[TX].announced_before) TRACE(msgr_tx_msg, call->fd, m, call->stream->global_id, 1);
}

static size_t total(const struct iovec *iov, size_t count) {
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) bytes += iov[i].iov_len;
    return bytes;
}

struct stream *stream_begin_send(int fd, const struct iovec *iov, size_t count) {
    struct stream *s = at(fd);
    if (!s) {
        if (!starts_with_magic(iov, count)) return NULL;
        if (!is_stream_socket(fd)) return NULL;
        stream_open(fd);
        if (!(s = at(fd))) return NULL;
    }
    if (!begin(s, TX)) return NULL;
    stream_worker = true;
    struct msgr_parser *p = &s->side[TX].parser;
    struct call call = {s, fd};
    struct msgr_sink sink = {offered, ignore_end, &call};
    size_t bytes = total(iov, count);
    s->side[TX].announced_before = s->side[TX].announced;
    if (TRACING(msgr_tx_msg) && ring_own) ring_expect(ring_own, RECORD_USUAL_BYTES);
    introduce(s, fd);
    if (p->phase != MSGR_BANNER) TRACE(msgr_send_enter, fd, (int64_t)bytes);
    if (p->phase == MSGR_BANNER && starts_with_magic(iov, count)) shim_load();
    s->has_before = TRACING(msgr_tx_msg) || p->phase == MSGR_BANNER;
    if (s->has_before) {
        bool in_banner = p->phase == MSGR_BANNER;
        p->details = p->later = true;
        msgr_copy(&s->before, p);
        feed(p, iov, count, bytes, &sink);
        if (in_banner && p->phase != MSGR_FOREIGN) TRACE(msgr_send_enter, fd, (int64_t)bytes);
    }
    return s;
}

void stream_sent(struct stream *s, int fd, const struct iovec *iov, size_t count, ssize_t result) {
    struct side *side = &s->side[TX];
    struct msgr_parser *p = &side->parser;
    bool ahead = s->has_before, keep = true;
    const struct msgr_parser *before = ahead ? &s->before : p;
    bool banner_before = before->banner;
    uint32_t mode_before = before->con_mode;
    if (ahead) {
        bool begun_before = before->reported || before->messages < side->announced_before;
        if (begun_before || result <= 0 || (size_t)result != total(iov, count)) {
            msgr_copy(p, before);
            ahead = false;
        }
    }
    if (result > 0) {
        if (!ahead) {
            p->details = s->has_before;
            p->later = false;
            struct call call = {s, fd};
            struct msgr_sink sink = {ignore_begin, taken, &call};
            feed(p, iov, count, (size_t)result, &sink);
        }
        keep = after(s, fd, TX, banner_before, mode_before);
    }
    if (keep) TRACE(msgr_send_exit, fd, (int64_t)result);
    finish(s, TX);
    if (!keep) stream_close(fd);
}

// -- receiving -------------------------------------------------------------------------------------------------------------

static void arrives(void *context, const struct msgr_message *m, bool whole) {
    const struct call *call = context;
    struct looked copy;
    call->stream->side[RX].open = !whole;
    TRACE_BEFORE(msgr_rx_msg, m = looked(m, &copy), call->fd, m, call->stream->global_id, whole);
}

static void arrived(void *context, const struct msgr_message *m) {
    const struct call *call = context;
    if (!call->stream->side[RX].open) return;
    call->stream->side[RX].open = false;
    TRACE(msgr_rx_msg, call->fd, m, call->stream->global_id, 1);
}

struct stream *stream_begin_receive(int fd) {
    struct stream *s = at(fd);
    return s ? begin(s, RX) : NULL;
}

void stream_received(struct stream *s, int fd, const struct iovec *iov, size_t count, ssize_t result) {
    bool keep = true;
    if (result > 0) {
        stream_worker = true;
        struct msgr_parser *p = &s->side[RX].parser;
        bool banner_before = p->banner;
        uint32_t mode_before = p->con_mode;
        struct call call = {s, fd};
        struct msgr_sink sink = {arrives, arrived, &call};
        p->details = p->later = TRACING(msgr_rx_msg);
        if (p->later && ring_own) ring_expect(ring_own, RECORD_USUAL_BYTES);
        // a stranger's first bytes show in the parser only: no event before it has seen the banner
        bool known = p->phase != MSGR_BANNER;
        introduce(s, fd);
        if (known) TRACE(msgr_recv, fd, (int64_t)result);
        feed(p, iov, count, (size_t)result, &sink);
        if (!known && p->phase != MSGR_FOREIGN) TRACE(msgr_recv, fd, (int64_t)result);
        keep = after(s, fd, RX, banner_before, mode_before);
    }
    finish(s, RX);
    if (!keep) stream_close(fd);
}

void stream_discover(int fd, const struct iovec *iov, size_t count, ssize_t result) {
    if (result < MSGR_MAGIC_BYTES || !starts_with_magic(iov, count) || !is_stream_socket(fd)) return;
    stream_open(fd);
    struct stream *s = stream_begin_receive(fd);
    if (s) stream_received(s, fd, iov, count, result);
}
