// SPDX-License-Identifier: MIT
#include "streams.h"

#include <sys/socket.h>

#include "frames.h"
#include "shim.h"
#include "stream.h"

#define USUAL(condition) __builtin_expect(condition, 1)

__thread bool stream_worker __attribute__((tls_model("initial-exec")));

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

// So many of the bytes have passed.
static bool begins_stream(int fd, const struct iovec *iov, size_t count, ssize_t passed) {
    return passed >= MSGR_MAGIC_BYTES && starts_with_magic(iov, count) && is_stream_socket(fd);
}

static inline bool begin(struct side *side) {
    if (__builtin_expect(__atomic_exchange_n(&side->busy, 1, __ATOMIC_ACQUIRE), 0)) {
        __atomic_store_n(&side->disturbed, 1, __ATOMIC_RELAXED);
        return false;
    }
    struct msgr_parser *p = &side->parser;
    if (__builtin_expect(__atomic_load_n(&side->disturbed, __ATOMIC_RELAXED), 0)) {
        __atomic_store_n(&side->disturbed, 0, __ATOMIC_RELAXED);
        if (p->phase < MSGR_ENCRYPTED) p->phase = MSGR_LOST;
    }
    p->peer_features = __atomic_load_n(&side->peer_features, __ATOMIC_RELAXED);
    return true;
}

static inline void finish(struct side *side) { __atomic_store_n(&side->busy, 0, __ATOMIC_RELEASE); }

static inline void introduce(struct stream *s, int fd) {
    bool on = TRACING(msgr_connect);
    unsigned now = __atomic_load_n(&stream_recordings, __ATOMIC_RELAXED);
    if (!USUAL(on == (now & 1) && (!on || s->recording == now))) stream_introduce(s, fd, on);
}

// Nothing is left to say of such a connection but its messages.
static inline bool plain_between_frames(const struct msgr_parser *p) {
    return msgr_between_frames(p) && !p->compressed;
}

// -- sending ----------------------------------------------------------------------------------------------------------

struct call {
    struct stream *stream;
    int fd;
};

static void ignore_end(void *context, const struct msgr_message *m) {
    (void)context;
    (void)m;
}

// A message for LTTng-UST: looked up, in `copy`, if it was left to the collector.
struct looked {
    struct msgr_message message;
    char object[MSGR_OBJECT_BYTES];
};

static const struct msgr_message *looked(const struct msgr_message *m, struct looked *copy) {
    if (!m->front) return m;
    copy->message = *m;
    msgr_look(&copy->message, copy->object);
    return &copy->message;
}

static inline __attribute__((always_inline)) void offer(struct stream *s, int fd, const struct msgr_message *m) {
    struct side *side = &s->side[TX];
    struct looked copy;
    if (!TRACING(msgr_tx_msg) || m->index < side->announced) return;
    side->announced = m->index + 1;
    TRACE_BEFORE(msgr_tx_msg, m = looked(m, &copy), fd, m, s->global_id, 0);
}

static void offered(void *context, const struct msgr_message *m, bool whole) {
    const struct call *call = context;
    (void)whole;
    offer(call->stream, call->fd, m);
}

static void ignore_begin(void *context, const struct msgr_message *m, bool whole) {
    (void)context;
    (void)m;
    (void)whole;
}

static void taken(void *context, const struct msgr_message *m) {
    const struct call *call = context;
    struct looked copy;
    if (m->index < call->stream->announced_before)
        TRACE_BEFORE(msgr_tx_msg, m = looked(m, &copy), call->fd, m, call->stream->global_id, 1);
}

static size_t total(const struct iovec *iov, size_t count) {
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) bytes += iov[i].iov_len;
    return bytes;
}

// What is no whole frame, or not between two. Not all that is offered may be taken: what the parser was before is kept.
static __attribute__((noinline)) void offer_rest(struct stream *s, int fd, struct msgr_bytes bytes) {
    struct msgr_parser *p = &s->side[TX].parser;
    bool in_banner = p->phase == MSGR_BANNER;
    if (in_banner && starts_with_magic(bytes.v, bytes.left > 0)) shim_load();
    msgr_copy(&s->before, p);
    s->before.messages = s->messages_before;
    struct call call = {s, fd};
    msgr_feed(p, bytes, &(struct msgr_sink){offered, ignore_end, &call});
    if (in_banner && p->phase != MSGR_FOREIGN) TRACE(msgr_send_enter, fd, (int64_t)s->offered);
}

struct stream *stream_of(int fd) {
    return stream_at(fd);
}

bool stream_begin_send(struct stream *s, int fd, const struct iovec *iov, size_t count) {
    struct side *side = &s->side[TX];
    if (!begin(side)) return false;
    stream_worker = true;
    struct msgr_parser *p = &side->parser;
    struct msgr_bytes bytes = {iov, 0, total(iov, count)};
    p->details = TRACING(msgr_tx_msg);
    introduce(s, fd);
    if (USUAL(p->phase != MSGR_BANNER)) TRACE(msgr_send_enter, fd, (int64_t)bytes.left);
    s->offered = bytes.left;
    s->messages_before = p->messages;
    s->announced_before = side->announced;
    bool between = plain_between_frames(p);
    if (USUAL(between)) {
        while (bytes.left > 0 && msgr_next(p, &bytes, false)) offer(s, fd, &p->message);
    }
    s->whole = between && bytes.left == 0;
    if (!USUAL(s->whole)) offer_rest(s, fd, bytes);
    return true;
}

// Some of it was not taken, or had been offered before, or is no whole frame.
static __attribute__((noinline)) void sent_unusually(struct stream *s, int fd, const struct iovec *iov,
                                                     ssize_t result) {
    struct msgr_parser *p = &s->side[TX].parser;
    const struct msgr_parser *before = s->whole ? p : &s->before;
    bool banner_before = before->banner, begun_before = before->reported || s->messages_before < s->announced_before,
         keep = true;
    uint32_t mode_before = before->con_mode;
    if (begun_before || result <= 0 || (size_t)result != s->offered) {
        if (s->whole) {
            p->messages = s->messages_before;
        } else {
            msgr_copy(p, before);
        }
        struct call call = {s, fd};
        struct msgr_bytes bytes = {iov, 0, result > 0 ? (size_t)result : 0};
        msgr_feed(p, bytes, &(struct msgr_sink){ignore_begin, taken, &call});
    }
    if (result > 0) keep = stream_changed(s, fd, TX, banner_before, mode_before);
    if (keep) TRACE(msgr_send_exit, fd, (int64_t)result);
    finish(&s->side[TX]);
    if (!keep) stream_close(fd);
}

void stream_sent(struct stream *s, int fd, const struct iovec *iov, ssize_t result) {
    if (USUAL(s->whole && (size_t)result == s->offered && s->messages_before >= s->announced_before)) {
        TRACE(msgr_send_exit, fd, (int64_t)result);
        finish(&s->side[TX]);
    } else {
        sent_unusually(s, fd, iov, result);
    }
}

void stream_discover_sent(int fd, const struct iovec *iov, size_t count, ssize_t result) {
    if (!begins_stream(fd, iov, count, result)) return;
    stream_open(fd);
    struct stream *s = stream_at(fd);
    if (s && stream_begin_send(s, fd, iov, count)) stream_sent(s, fd, iov, result);
}

// -- receiving --------------------------------------------------------------------------------------------------------

// One copy of it: the less code, the warmer.
static __attribute__((noinline)) void arrive(struct stream *s, int fd, const struct msgr_message *m, bool whole) {
    struct looked copy;
    TRACE_BEFORE(msgr_rx_msg, m = looked(m, &copy), fd, m, s->global_id, whole);
}

static void arrives(void *context, const struct msgr_message *m, bool whole) {
    const struct call *call = context;
    call->stream->side[RX].open = !whole;
    arrive(call->stream, call->fd, m, whole);
}

static void arrived(void *context, const struct msgr_message *m) {
    const struct call *call = context;
    if (!call->stream->side[RX].open) return;
    call->stream->side[RX].open = false;
    arrive(call->stream, call->fd, m, true);
}

struct stream *stream_begin_receive(int fd) {
    struct stream *s = stream_at(fd);
    return s && begin(&s->side[RX]) ? s : NULL;
}

static __attribute__((noinline)) void receive_rest(struct stream *s, int fd, struct msgr_bytes bytes) {
    struct msgr_parser *p = &s->side[RX].parser;
    bool banner_before = p->banner, in_banner = p->phase == MSGR_BANNER;
    uint32_t mode_before = p->con_mode;
    struct call call = {s, fd};
    msgr_feed(p, bytes, &(struct msgr_sink){arrives, arrived, &call});
    // a stranger's first bytes show in the parser only: no event before it has seen the banner
    if (in_banner && p->phase != MSGR_FOREIGN) TRACE(msgr_recv, fd, (int64_t)bytes.left);
    bool keep = stream_changed(s, fd, RX, banner_before, mode_before);
    finish(&s->side[RX]);
    if (!keep) stream_close(fd);
}

void stream_received(struct stream *s, int fd, const struct iovec *iov, ssize_t result) {
    struct side *side = &s->side[RX];
    if (USUAL(result > 0)) {
        stream_worker = true;
        struct msgr_parser *p = &side->parser;
        struct msgr_bytes bytes = {iov, 0, (size_t)result};
        p->details = TRACING(msgr_rx_msg);
        introduce(s, fd);
        if (USUAL(p->phase != MSGR_BANNER)) TRACE(msgr_recv, fd, (int64_t)result);
        // pieces of a message are usual here: Ceph reads 4 KiB, and then the rest
        if (!p->compressed && msgr_ends(p, &bytes)) {
            arrived(&(struct call){s, fd}, &p->message);
            p->message.front = NULL;
        }
        if (USUAL(plain_between_frames(p))) {
            for (enum msgr_found found; bytes.left > 0 && (found = msgr_next(p, &bytes, true)) != MSGR_NOTHING;) {
                side->open = found != MSGR_WHOLE;
                arrive(s, fd, &p->message, found == MSGR_WHOLE);
            }
        }
        if (!USUAL(bytes.left == 0)) {
            receive_rest(s, fd, bytes);
            return;
        }
    }
    finish(side);
}

void stream_discover(int fd, const struct iovec *iov, size_t count, ssize_t result) {
    if (!begins_stream(fd, iov, count, result)) return;
    stream_open(fd);
    struct stream *s = stream_begin_receive(fd);
    if (s) stream_received(s, fd, iov, result);
}
