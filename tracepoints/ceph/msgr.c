// SPDX-License-Identifier: MIT
#include "frames.h"

static const char MAGIC[MSGR_MAGIC_BYTES] = "ceph v2\n";

bool msgr_is_magic(const void *data) { return get64(data) == get64((const uint8_t *)MAGIC); }

uint32_t crc32c_slow(const uint8_t *p, size_t n) {
    uint32_t crc = 0;
    while (n--) {
        crc ^= *p++;
        for (int i = 0; i < 8; i++) crc = crc >> 1 ^ (0x82f63b78u & -(crc & 1));
    }
    return crc;
}

const uint8_t *msgr_gather(struct msgr_bytes *bytes, size_t n, uint8_t *room) {
    for (size_t have = 0; have < n;) {
        size_t part = bytes->v->iov_len - bytes->at;
        if (part > n - have) part = n - have;
        if (part) memcpy(room + have, (const uint8_t *)bytes->v->iov_base + bytes->at, part);
        have += part;
        bytes->at += part;
        if (have < n) {
            bytes->v++;
            bytes->at = 0;
        }
    }
    bytes->left -= n;
    return room;
}

void msgr_reset(struct msgr_parser *p) {
    memset(p, 0, offsetof(struct msgr_parser, buf));
    p->peer_features = UINT64_MAX;
    p->message.object = MSGR_NO_OBJECT;
    msgr_expect(p, MSGR_BANNER, MSGR_MAGIC_BYTES + 2);
}

void msgr_copy(struct msgr_parser *to, const struct msgr_parser *from) {
    memcpy(to, from, offsetof(struct msgr_parser, message));
    if (from->phase == MSGR_PREAMBLE && from->have == 0) return;
    to->message = from->message;
    bool front = from->phase == MSGR_BODY && from->message.front;
    if (front) to->message.front = to->buf;
    memcpy(to->buf, from->buf, front ? from->message.front_bytes : from->have);
}

static void resync(struct msgr_parser *p, struct msgr_bytes bytes) {
    if (bytes.left < MSGR_PREAMBLE_BYTES || bytes.v->iov_len < MSGR_PREAMBLE_BYTES || !is_preamble(bytes.v->iov_base))
        return;
    p->reported = false;
    p->message.front = NULL;
    msgr_expect(p, MSGR_PREAMBLE, MSGR_PREAMBLE_BYTES);
}

static void frame_end(struct msgr_parser *p, const struct msgr_sink *sink) {
    if (p->tag == TAG_MESSAGE && p->reported) {
        p->reported = false;
        sink->end(sink->context, &p->message);
        p->message.front = NULL;
    }
    if (p->tag == TAG_AUTH_DONE && p->con_mode == MSGR_SECURE) {
        msgr_expect(p, MSGR_ENCRYPTED, 0);
    } else {
        msgr_expect(p, MSGR_PREAMBLE, MSGR_PREAMBLE_BYTES);
    }
}

// Skip what is left of the frame; 0 bytes are the frame's end.
static void body(struct msgr_parser *p, const struct msgr_sink *sink) {
    p->phase = MSGR_BODY;
    p->have = 0;
    if (p->left == 0) frame_end(p, sink);
}

static void preamble(struct msgr_parser *p, const uint8_t *b, const struct msgr_sink *sink) {
    if (!is_preamble(b)) {
        msgr_expect(p, MSGR_LOST, 0);
        return;
    }
    p->tag = b[0];
    p->rev1 = p->features & p->peer_features & FEATURE_REVISION_1;
    struct frame f = frame_of(b, p->rev1);
    p->left = f.payload;
    uint32_t look = 0;
    if (p->tag == TAG_MESSAGE) {
        if (frame_is_compressed(b)) {
            p->compressed = true;
        } else if (f.head >= MSGR_HEADER_BYTES) {
            look = MSGR_HEADER_BYTES;
            p->front = f.head == MSGR_HEADER_BYTES ? f.front : 0;
        }
    } else if (p->tag == TAG_AUTH_DONE && f.head >= 12) {
        look = 12;
    }
    p->left -= look;
    if (look) {
        msgr_expect(p, MSGR_HEAD, look);
    } else {
        body(p, sink);
    }
}

// Walks over a front segment; `ok` becomes false at its end, or at the end of what is looked at.
struct walk {
    const uint8_t *p, *end;
    bool ok;
};

static const uint8_t *take(struct walk *w, size_t n) {
    static const uint8_t nothing[OP_BYTES];
    if (!w->ok || (size_t)(w->end - w->p) < n) {
        w->ok = false;
        return nothing;
    }
    const uint8_t *at = w->p;
    w->p += n;
    return at;
}

// A versioned structure: version, compatible version, length of the rest.
static void skip_versioned(struct walk *w) {
    uint32_t bytes = get32(take(w, 6) + 2);
    take(w, bytes);
}

// MOSDOp, message version 8 (Jewel) and 9 (Squid), up to the first operation that says what is done:
// src/messages/MOSDOp.h
static void osd_op(struct msgr_message *m, char object[MSGR_OBJECT_BYTES]) {
    struct walk w = {m->front, m->front + m->front_bytes, m->version == 8 || m->version == 9};
    if (!m->front_skipped) {
        skip_versioned(&w);  // spg_t
        take(&w, 12);        // hash, epoch, flags
        skip_versioned(&w);  // osd_reqid_t
        take(&w, BLKIN_TRACE_BYTES);
        if (m->version >= 9) skip_versioned(&w);  // OpenTelemetry's context
        take(&w, 12);                             // client_inc, mtime
    }
    skip_versioned(&w);  // object_locator_t
    uint32_t length = get32(take(&w, 4));
    const uint8_t *name = take(&w, length);
    uint16_t count = get16(take(&w, 2));
    if (!w.ok || length >= MSGR_OBJECT_BYTES || memchr(name, 0, length)) return;
    memcpy(object, name, length);
    object[length] = 0;
    m->object = object;
    for (unsigned i = 0; i < count; i++) {
        const uint8_t *op = take(&w, OP_BYTES);
        if (!w.ok) return;
        m->op = get16(op);
        m->offset = get64(op + 6);
        m->length = get64(op + 14);
        if (m->op != OP_SETALLOCHINT) return;
    }
}

// MOSDRepOp from version 2, MOSDRepOpReply from 2: two epochs, the trace, the reqid (src/messages/MOSDRepOp.h,
// MOSDRepOpReply.h)
static void replica_op(struct msgr_message *m) {
    struct walk w = {m->front, m->front + m->front_bytes, m->version >= 2};
    take(&w, 8 + BLKIN_TRACE_BYTES);
    const uint8_t *head = take(&w, 6), *reqid = take(&w, REQID_BYTES);
    if (!w.ok || head[0] != 2 || get32(head + 2) != REQID_BYTES) return;
    m->client = get64(reqid + 1);
    m->client_tid = get64(reqid + 9);
}

void msgr_look(struct msgr_message *m, char object[MSGR_OBJECT_BYTES]) {
    if (m->type == MSGR_OSD_OP) {
        osd_op(m, object);
    } else {
        replica_op(m);
    }
    m->front = NULL;
}

static void announce(struct msgr_parser *p, size_t rest, const struct msgr_sink *sink) {
    p->message.index = p->messages++;
    p->reported = true;
    sink->begin(sink->context, &p->message, p->left <= rest);
    body(p, sink);
}

// `rest`: bytes of this call behind those at `b`.
static void head(struct msgr_parser *p, const uint8_t *b, size_t rest, const struct msgr_sink *sink) {
    if (p->tag == TAG_AUTH_DONE) {
        p->global_id = get64(b);
        p->con_mode = get32(b + 8);
        body(p, sink);
        return;
    }
    frame_message(&p->message, p->left + MSGR_HEADER_BYTES, b);
    uint32_t wanted = p->details ? frame_looked_at(p->message.type, p->front) : 0;
    if (wanted) {
        msgr_expect(p, MSGR_FRONT, wanted);
        p->gap = p->rev1 ? 4 : 0;
        p->left -= p->need + p->gap;
    } else {
        announce(p, rest, sink);
    }
}

// What the phase takes is at `b`.
static void filled(struct msgr_parser *p, const uint8_t *b, size_t rest, const struct msgr_sink *sink) {
    switch (p->phase) {
    case MSGR_BANNER:
        if (!msgr_is_magic(b)) {
            msgr_expect(p, MSGR_FOREIGN, 0);
        } else {
            uint16_t bytes = get16(b + MSGR_MAGIC_BYTES);
            p->left = bytes > 16 ? bytes - 16u : 0;
            msgr_expect(p, bytes >= 8 ? MSGR_BANNER_REST : MSGR_FOREIGN, bytes > 16 ? 16 : bytes);
        }
        break;
    case MSGR_BANNER_REST:
        p->features = get64(b);
        p->banner = true;
        p->tag = 0;
        body(p, sink);
        break;
    case MSGR_PREAMBLE: preamble(p, b, sink); break;
    case MSGR_HEAD: head(p, b, rest, sink); break;
    case MSGR_FRONT:
        // what is not whole ends in another call, when this is gone
        p->message.front = p->left > rest && b != p->buf ? memcpy(p->buf, b, p->need) : b;
        p->message.front_bytes = (uint16_t)p->need;
        announce(p, rest, sink);
        break;
    default: break;
    }
}

// The bytes at `data`, of which `more` follow in the same call.
static void feed(struct msgr_parser *p, const uint8_t *data, size_t bytes, size_t more, const struct msgr_sink *sink) {
    while (bytes > 0) {
        if (p->phase == MSGR_BODY) {
            size_t skip = p->left < bytes ? (size_t)p->left : bytes;
            p->left -= skip;
            data += skip;
            bytes -= skip;
            if (p->left == 0) frame_end(p, sink);
        } else if (p->phase >= MSGR_ENCRYPTED) {
            return;
        } else if (p->gap > 0) {
            size_t skip = p->gap < bytes ? p->gap : bytes;
            p->gap -= (uint16_t)skip;
            data += skip;
            bytes -= skip;
        } else if (p->have == 0 && bytes >= p->need) {  // no need to collect it
            const uint8_t *b = data;
            data += p->need;
            bytes -= p->need;
            filled(p, b, bytes + more, sink);
        } else {
            size_t part = p->need - p->have < bytes ? p->need - p->have : bytes;
            memcpy(p->buf + p->have, data, part);
            p->have += (uint32_t)part;
            data += part;
            bytes -= part;
            // a stranger shows with its first bytes: don't wait for ten
            if (p->phase == MSGR_BANNER &&
                memcmp(p->buf, MAGIC, p->have < MSGR_MAGIC_BYTES ? p->have : MSGR_MAGIC_BYTES) != 0) {
                msgr_expect(p, MSGR_FOREIGN, 0);
            } else if (p->have == p->need) {
                filled(p, p->buf, bytes + more, sink);
            }
        }
    }
}

void msgr_feed(struct msgr_parser *p, struct msgr_bytes bytes, const struct msgr_sink *sink) {
    if (p->phase == MSGR_LOST) resync(p, bytes);
    for (; bytes.left > 0; bytes.v++, bytes.at = 0) {
        size_t part = bytes.v->iov_len - bytes.at;
        if (part > bytes.left) part = bytes.left;
        bytes.left -= part;
        feed(p, (const uint8_t *)bytes.v->iov_base + bytes.at, part, bytes.left, sink);
    }
}
