// SPDX-License-Identifier: MIT
// Frames as they lie in a call's bytes, and the short way through them: of what is whole there is no state but the
// parser's count of messages. What these functions don't take is for msgr_feed(), which would have done the same with
// what they do.
#pragma once
#include <string.h>

#include "msgr.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "msgr2 is little-endian, and so is this file"
#endif

enum {
    TAG_AUTH_DONE = 6,
    TAG_MESSAGE = 17,
    TAG_LAST = 31,  // 22 are known; a few more may come
    MAX_SEGMENTS = 4,
    FLAG_COMPRESSED = 1,
    FEATURE_REVISION_1 = 1,    // CEPH_MSGR2_FEATURE_REVISION_1: msgr2.1
    OP_BYTES = 38,             // struct ceph_osd_op
    OP_SETALLOCHINT = 0x2223,  // CEPH_OSD_OP_SETALLOCHINT
    BLKIN_TRACE_BYTES = 24,
    REQID_BYTES = 21,  // osd_reqid_t, behind its version: type, number, tid, incarnation
    REPOP_BYTES = 4 + 4 + BLKIN_TRACE_BYTES + 6 + REQID_BYTES,
};

static inline uint16_t get16(const uint8_t *p) {
    uint16_t v;
    memcpy(&v, p, sizeof v);
    return v;
}
static inline uint32_t get32(const uint8_t *p) {
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}
static inline uint64_t get64(const uint8_t *p) {
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

// CRC-32C, without the inversions, from 0: how Ceph seals a preamble.
uint32_t crc32c_slow(const uint8_t *p, size_t n);

static inline uint32_t preamble_crc(const uint8_t *p) {
#ifdef __x86_64__
    // the instruction itself: the function for it would not be inlined
    if (__builtin_expect(__builtin_cpu_supports("sse4.2"), 1)) {
        uint64_t crc = 0;
        for (int i = 0; i < 3; i++) __asm__("crc32q %1, %0" : "+r"(crc) : "rm"(get64(p + 8 * i)));
        __asm__("crc32l %1, %k0" : "+r"(crc) : "rm"(get32(p + 24)));
        return (uint32_t)crc;
    }
#endif
    return crc32c_slow(p, 28);
}

static inline bool is_preamble(const uint8_t *p) {
    return (unsigned)(p[0] - 1) < TAG_LAST && (unsigned)(p[1] - 1) < MAX_SEGMENTS && get32(p + 28) == preamble_crc(p);
}

// Of a preamble: bytes of the first and the second segment, and of all that comes behind the preamble.
struct frame {
    uint32_t head, front;
    uint64_t payload;
};

static inline struct frame frame_of(const uint8_t *b, bool rev1) {
    unsigned count = b[1];
    uint64_t first = get32(b + 2), second = count > 1 ? get32(b + 8) : 0;
    uint64_t payload = first + second + (count > 2 ? get32(b + 14) : 0) + (count > 3 ? get32(b + 20) : 0);
    // msgr2.1: the first segment has its checksum behind it, the others theirs at the end, if there are others
    payload += rev1 ? (first ? 4 : 0) + (count > 1 ? 13 : 0) : 17;
    return (struct frame){(uint32_t)first, (uint32_t)second, payload};
}

static inline bool frame_is_compressed(const uint8_t *preamble) { return preamble[26] & FLAG_COMPRESSED; }

// The message whose header is at `b`, without what its front says. One by one: gcc would clear and copy the whole by
// `rep`.
static inline void frame_message(struct msgr_message *m, uint64_t payload, const uint8_t *b) {
    m->seq = get64(b);
    m->tid = get64(b + 8);
    m->type = get16(b + 16);
    m->version = get16(b + 20);
    m->flen = (uint32_t)(MSGR_PREAMBLE_BYTES + payload);
    m->front = NULL;
    m->front_bytes = m->front_skipped = 0;
    m->op = 0;
    m->offset = m->length = 0;
    m->object = MSGR_NO_OBJECT;
    m->client = 0;
    m->client_tid = msgr_own(m->type, m->tid);
}

// The message's front, without what says nothing that is looked up: what comes before the object's locator, if it is of
// the form that Ceph 10 to 19 give it (MOSDOp, message version 8 and 9).
static inline void frame_front(struct msgr_message *m, const uint8_t *p, uint32_t bytes) {
    enum { SPG = 6 + 18, HASH = 12, REQID = 6 + REQID_BYTES, CONTEXT = 6 + 1, TIME = 12 };
    enum { BEFORE_CONTEXT = SPG + HASH + REQID + BLKIN_TRACE_BYTES, UNNEEDED = BEFORE_CONTEXT + CONTEXT + TIME };
    uint32_t skipped = 0;
    if (m->type == MSGR_OSD_OP && bytes >= UNNEEDED && get32(p + 2) == SPG - 6 &&
        get32(p + SPG + HASH + 2) == REQID_BYTES) {
        if (m->version == 8) skipped = UNNEEDED - CONTEXT;
        if (m->version == 9 && get32(p + BEFORE_CONTEXT + 2) == CONTEXT - 6) skipped = UNNEEDED;
    }
    m->front = p + skipped;
    m->front_bytes = (uint16_t)(bytes - skipped);
    m->front_skipped = (uint16_t)skipped;
}

// As memcpy(): a call would take longer.
static inline void copy_bytes(void *to, const uint8_t *from, size_t n) {
    struct piece {
        char bytes[16];
    } piece;
    if (__builtin_expect(n < sizeof piece, 0)) {
        memcpy(to, from, n);
        return;
    }
    for (size_t i = 0; i < n - sizeof piece; i += sizeof piece) {
        memcpy(&piece, from + i, sizeof piece);
        memcpy((char *)to + i, &piece, sizeof piece);
    }
    memcpy(&piece, from + n - sizeof piece, sizeof piece);
    memcpy((char *)to + n - sizeof piece, &piece, sizeof piece);
}

// How many bytes of the front segment are looked at, if it has `front`.
static inline uint32_t frame_looked_at(uint16_t type, uint32_t front) {
    uint32_t most = type == MSGR_OSD_OP                                     ? MSGR_HEAD_BYTES
                    : type == MSGR_OSD_REPOP || type == MSGR_OSD_REPOPREPLY ? REPOP_BYTES
                                                                            : 0;
    return front < most ? front : most;
}

// -- a call's bytes ---------------------------------------------------------------------------------------------------

// n of them, of as many as are left: where they lie, or in `room`.
const uint8_t *msgr_gather(struct msgr_bytes *bytes, size_t n, uint8_t *room);
static inline const uint8_t *msgr_take(struct msgr_bytes *bytes, size_t n, uint8_t *room) {
    if (bytes->at == bytes->v->iov_len) {
        bytes->v++;
        bytes->at = 0;
    }
    if (__builtin_expect(bytes->v->iov_len - bytes->at < n, 0)) return msgr_gather(bytes, n, room);
    const uint8_t *p = (const uint8_t *)bytes->v->iov_base + bytes->at;
    bytes->at += n;
    bytes->left -= n;
    return p;
}

static inline void msgr_skip(struct msgr_bytes *bytes, size_t n) {
    bytes->left -= n;
    for (size_t part; n > (part = bytes->v->iov_len - bytes->at); n -= part) {
        bytes->v++;
        bytes->at = 0;
    }
    bytes->at += n;
}

// What the parser takes next.
static inline void msgr_expect(struct msgr_parser *p, enum msgr_phase phase, uint32_t need) {
    p->phase = phase;
    p->have = 0;
    p->need = need;
    p->gap = 0;
}

static inline bool msgr_between_frames(const struct msgr_parser *p) {
    return p->phase == MSGR_PREAMBLE && p->have == 0;
}

#define SHORT_WAY static inline __attribute__((always_inline))

enum msgr_found {
    MSGR_NOTHING,
    MSGR_WHOLE,  // the parser's message, and all of its frame
    MSGR_BEGUN,  // the parser's message: what is looked at of it, and all of these bytes
};

// The next message, if the parser is between two frames. One that is not whole only if `pieces`.
SHORT_WAY enum msgr_found msgr_next(struct msgr_parser *p, struct msgr_bytes *bytes, bool pieces) {
    bool rev1 = p->features & p->peer_features & FEATURE_REVISION_1;
    struct msgr_message *m = &p->message;
    while (bytes->left >= MSGR_PREAMBLE_BYTES) {
        struct msgr_bytes behind = *bytes;
        const uint8_t *b = msgr_take(&behind, MSGR_PREAMBLE_BYTES, p->buf);
        struct frame f = frame_of(b, rev1);
        bool whole = f.payload <= behind.left, message = b[0] == TAG_MESSAGE && f.head >= MSGR_HEADER_BYTES;
        if (!whole && (!pieces || !message || behind.left < MSGR_HEADER_BYTES)) return MSGR_NOTHING;
        if (!is_preamble(b) || b[0] == TAG_AUTH_DONE || (b[0] == TAG_MESSAGE && frame_is_compressed(b)))
            return MSGR_NOTHING;
        if (message) {
            uint64_t missing = f.payload - behind.left;
            frame_message(m, f.payload, msgr_take(&behind, MSGR_HEADER_BYTES, p->buf));
            uint32_t front = p->details ? frame_looked_at(m->type, f.head == MSGR_HEADER_BYTES ? f.front : 0) : 0;
            if (front) {
                if (!whole && behind.left < 4 + front) return MSGR_NOTHING;
                if (rev1) msgr_skip(&behind, 4);
                frame_front(m, msgr_take(&behind, front, p->buf), front);
            }
            m->index = p->messages++;
            if (!whole) {
                if (front) {
                    copy_bytes(p->buf, m->front, m->front_bytes);  // maybe it is there, and moves to the front
                    m->front = p->buf;
                }
                p->tag = TAG_MESSAGE;
                p->phase = MSGR_BODY;
                p->left = missing;
                p->reported = true;
                bytes->left = 0;
                return MSGR_BEGUN;
            }
        }
        if (bytes->left == MSGR_PREAMBLE_BYTES + f.payload) {
            bytes->left = 0;
        } else {
            msgr_skip(bytes, MSGR_PREAMBLE_BYTES + f.payload);
        }
        if (message) return MSGR_WHOLE;
    }
    return MSGR_NOTHING;
}

// The parser's message has ended: its rest is among these bytes.
SHORT_WAY bool msgr_ends(struct msgr_parser *p, struct msgr_bytes *bytes) {
    if (p->phase != MSGR_BODY || p->tag != TAG_MESSAGE || !p->reported) return false;
    if (p->left > bytes->left) {
        p->left -= bytes->left;
        bytes->left = 0;
        return false;
    }
    msgr_skip(bytes, p->left);
    p->left = 0;
    p->reported = false;
    msgr_expect(p, MSGR_PREAMBLE, MSGR_PREAMBLE_BYTES);
    return true;
}
