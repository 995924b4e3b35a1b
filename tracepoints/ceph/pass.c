// SPDX-License-Identifier: MIT
#include "pass.h"

#include <string.h>

#include "msgr.h"

// Takes arguments off a record in their order. What a process has written is not believed: `ok` becomes false where the
// record is too short.
struct taker {
    const char *at, *end;
    bool ok;
};

static const void *take(struct taker *t, size_t bytes) {
    static const uint64_t nothing[sizeof(struct ring_message) / 8];
    if (!t->ok || (size_t)(t->end - t->at) < bytes) {
        t->ok = false;
        return nothing;
    }
    const char *at = t->at;
    t->at += bytes;
    return at;
}

static uint64_t number(struct taker *t) {
    uint64_t v;
    memcpy(&v, take(t, sizeof v), sizeof v);
    return v;
}

static const char *text(struct taker *t) {
    uint64_t bytes = number(t);
    if (bytes == 0 || bytes > RING_TEXT_BYTES) t->ok = false;
    const char *at = take(t, t->ok ? (bytes + 7) / 8 * 8 : 0);
    if (t->ok && memchr(at, 0, bytes) != at + bytes - 1) t->ok = false;
    return t->ok ? at : "";
}

static const void *pointer(struct taker *t) { return (const void *)(uintptr_t)number(t); }

static const struct msgr_message *message(struct taker *t, struct msgr_message *m, char object[MSGR_OBJECT_BYTES]) {
    struct ring_message r;
    memcpy(&r, take(t, sizeof r), sizeof r);
    *m = (struct msgr_message){.tid = r.tid,
                               .seq = r.seq,
                               .flen = r.flen,
                               .type = r.type,
                               .version = r.version,
                               .object = MSGR_NO_OBJECT,
                               .client_tid = msgr_own(r.type, r.tid)};
    if (r.front_bytes) {
        m->front = take(t, (r.front_bytes + 7u) / 8 * 8);
        m->front_bytes = r.front_bytes;
        m->front_skipped = r.front_skipped;
        if (t->ok) msgr_look(m, object);
    }
    return m;
}

// The arguments are taken before the event, in their order: C leaves the order within a call open.
#define N(name) uint64_t name = number(&t)
#define P(name) const void *name = pointer(&t)
#define T(name) const char *name = text(&t)
#define M(name)                                                                                                        \
    struct msgr_message name##_storage;                                                                                \
    char name##_object[MSGR_OBJECT_BYTES];                                                                             \
    const struct msgr_message *name = message(&t, &name##_storage, name##_object)
#define PASS(event, arguments, ...)                                                                                    \
    case RING_##event: {                                                                                               \
        if (!lttng_ust_tracepoint_enabled(cephring, event)) return NOT_ENABLED;                                        \
        arguments;                                                                                                     \
        if (!t.ok || t.at != t.end) return BROKEN;                                                                     \
        lttng_ust_do_tracepoint(cephring, event, origin, __VA_ARGS__);                                                 \
        return PASSED;                                                                                                 \
    }
#define AND ;

enum passed pass_record(const struct ring_origin *origin, const void *record, size_t bytes) {
    struct ring_record head;
    if (bytes < sizeof head) return BROKEN;
    memcpy(&head, record, sizeof head);
    struct taker t = {(const char *)record + sizeof head, (const char *)record + bytes, true};
    switch (head.kind) {
        PASS(msgr_send_enter, N(fd) AND N(size), (int)fd, (int64_t)size)
        PASS(msgr_send_exit, N(fd) AND N(size), (int)fd, (int64_t)size)
        PASS(msgr_recv, N(fd) AND N(size), (int)fd, (int64_t)size)
        PASS(msgr_epoll_return, N(fd) AND N(ready), (int)fd, (int)ready)
        PASS(msgr_tx_msg, N(fd) AND M(m) AND N(client) AND N(whole), (int)fd, m, client, (int)whole)
        PASS(msgr_rx_msg, N(fd) AND M(m) AND N(client) AND N(whole), (int)fd, m, client, (int)whole)
        PASS(msgr_connect, N(fd) AND N(direction) AND N(local) AND N(remote), (int)fd, (int)direction, (uint32_t)local,
             (uint32_t)remote)
        PASS(msgr_session, N(fd) AND N(client) AND N(local) AND N(remote) AND N(rev1) AND N(mode), (int)fd, client,
             (uint32_t)local, (uint32_t)remote, (int)rev1, (int)mode)
        PASS(msgr_unreadable, N(fd) AND N(direction) AND T(why), (int)fd, (int)direction, why)
        PASS(aio_submit, N(request) AND N(fd) AND N(op) AND N(offset) AND N(length) AND N(i) AND N(count), request,
             (int)fd, (int)op, offset, length, (int)i, (int)count)
        PASS(aio_submit_exit, N(result), (int)result)
        PASS(aio_complete, N(request) AND N(result), request, (int64_t)result)
        PASS(uring_submit, N(request) AND N(fd) AND N(op) AND N(offset) AND N(length) AND N(i) AND N(count), request,
             (int)fd, (int)op, offset, length, (int)i, (int)count)
        PASS(uring_submit_exit, N(result), (int)result)
        PASS(uring_complete, N(request) AND N(result), request, (int64_t)result)
        PASS(sysio_pwrite_enter, N(fd) AND N(offset) AND N(length), (int)fd, offset, length)
        PASS(sysio_pread_enter, N(fd) AND N(offset) AND N(length), (int)fd, offset, length)
        PASS(sysio_sfr_enter, N(fd) AND N(offset) AND N(length), (int)fd, offset, length)
        PASS(sysio_pwrite_exit, N(fd) AND N(result), (int)fd, (int64_t)result)
        PASS(sysio_pread_exit, N(fd) AND N(result), (int)fd, (int64_t)result)
        PASS(sysio_fdatasync_enter, N(fd), (int)fd)
        PASS(sysio_fsync_enter, N(fd), (int)fd)
        PASS(sysio_fdatasync_exit, N(fd) AND N(result), (int)fd, (int)result)
        PASS(sysio_fsync_exit, N(fd) AND N(result), (int)fd, (int)result)
        PASS(sysio_sfr_exit, N(fd) AND N(result), (int)fd, (int)result)
        PASS(radoscxx_aio_operate_enter, T(object) AND P(handle), object, handle)
        PASS(radoscxx_aio_operate_exit, P(handle) AND N(result), handle, (int)result)
        PASS(radoscxx_get_return_value, P(handle) AND N(result), handle, (int)result)
        PASS(rados_aio_exit, P(handle) AND N(result), handle, (int)result)
        PASS(rados_get_return_value, P(handle) AND N(result), handle, (int)result)
        PASS(radoscxx_wait_enter, P(handle), handle)
        PASS(radoscxx_wait_exit, P(handle), handle)
        PASS(rados_wait_enter, P(handle), handle)
        PASS(rados_wait_exit, P(handle), handle)
        PASS(rados_release, P(handle), handle)
        PASS(radoscxx_completion_cb, P(handle) AND P(argument), handle, argument)
        PASS(rados_completion_cb, P(handle) AND P(argument), handle, argument)
        PASS(rados_aio_enter, T(name) AND T(object) AND P(handle) AND N(offset) AND N(length), name, object, handle,
             offset, length)
        PASS(rados_sync_enter, T(name) AND T(object) AND N(offset) AND N(length), name, object, offset, length)
        PASS(rados_sync_exit, T(name) AND T(object) AND N(result), name, object, (int)result)
    default: return BROKEN;
    }
}

bool pass_lost(const struct ring_origin *origin, uint64_t count, const char *reason) {
    if (!lttng_ust_tracepoint_enabled(cephring, lost)) return false;
    lttng_ust_do_tracepoint(cephring, lost, origin, count, reason);
    return true;
}

bool pass_enabled(void) { return lttng_ust_tracepoint_enabled(cephring, lost); }
