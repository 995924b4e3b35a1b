// SPDX-License-Identifier: MIT
// Frames of Ceph's messenger protocol 2 (msgr2.0 and msgr2.1) in one direction of a connection, from its bytes in
// whatever pieces they come. No system call, no allocation, no event: those are streams.c's. Format: Ceph's
// doc/dev/msgr2.rst, src/msg/async/frames_v2.h, src/include/msgr.h.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

enum {
    MSGR_MAGIC_BYTES = 8,  // "ceph v2\n"
    MSGR_PREAMBLE_BYTES = 32,
    MSGR_HEADER_BYTES = 41,   // struct ceph_msg_header2
    MSGR_HEAD_BYTES = 1024,   // of a frame: what is looked at. An OSD_OP's operations come after the object's name
    MSGR_OBJECT_BYTES = 256,  // an object's name with its end; longer ones are not looked up
    MSGR_OSD_OP = 42,         // CEPH_MSG_OSD_OP
    MSGR_OSD_OPREPLY = 43,
    MSGR_OSD_REPOP = 112,  // between OSDs: MSG_OSD_REPOP and its reply
    MSGR_OSD_REPOPREPLY = 113,
    MSGR_CRC = 1,
    MSGR_SECURE = 2,  // CEPH_CON_MODE_*
};

enum msgr_phase {
    MSGR_BANNER,
    MSGR_BANNER_REST,
    MSGR_PREAMBLE,
    MSGR_HEAD,
    MSGR_FRONT,
    MSGR_BODY,
    MSGR_ENCRYPTED,  // from AUTH_DONE with mode secure on: nothing can be read
    MSGR_LOST,       // what came was no frame: wait for a call that begins with one
    MSGR_FOREIGN,    // the connection did not begin with the banner
};

// Not empty: babeltrace2 2.0.4 shows an empty text as the one that was there before.
#define MSGR_NO_OBJECT "-"

// A message frame.
struct msgr_message {
    uint64_t tid, seq;
    uint64_t index;  // how many came before in this direction
    uint32_t flen;   // bytes of the frame, all of it
    uint16_t type, version;
    // Not NULL: what follows, up to client_tid, is still to be looked up here by msgr_look(). Valid in the sink's call
    // only. An OSD_OP's may be without its first `front_skipped` bytes.
    const uint8_t *front;
    uint16_t front_bytes, front_skipped;
    // this, offset, length, object: of an OSD_OP's first operation that is no hint; else 0 and MSGR_NO_OBJECT
    uint16_t op;
    uint64_t offset, length;
    const char *object;
    uint64_t client, client_tid;  // the client's message that it is about: of a replica's both; else 0 and msgr_own()
};

// The transaction number of the client's own messages and of their replies is the client's.
static inline uint64_t msgr_own(uint16_t type, uint64_t tid) {
    return type == MSGR_OSD_OP || type == MSGR_OSD_OPREPLY ? tid : 0;
}

struct msgr_parser {
    uint8_t phase;
    uint8_t tag;
    bool rev1;                    // the current frame is msgr2.1's
    bool banner;                  // this direction's banner is complete
    bool compressed;              // a message came that was compressed
    bool details;                 // messages are to have their `front`. Set by the caller
    bool reported;                // the current message's header has been given to the sink
    uint32_t have, need;          // bytes in buf, and how many the phase takes
    uint64_t messages;            // message frames whose header was complete
    uint64_t features;            // that this direction's banner supports
    uint64_t peer_features;       // that the other's does; all until that is known. Set by the caller
    uint64_t left;                // bytes of the frame that are still to come and not looked at
    uint32_t front;               // bytes of the message's front segment
    uint16_t gap;                 // bytes that come before those of the phase, and are not looked at
    uint64_t global_id;           // AUTH_DONE's: the client's number, as in the OSD's reqid; 0 unknown
    uint32_t con_mode;            // AUTH_DONE's; 0 unknown
    struct msgr_message message;  // the current one
    // what has come of what the phase takes; in MSGR_BODY the message's front, if it has one
    uint8_t buf[MSGR_HEAD_BYTES];
};

struct msgr_sink {
    // The header of a message is complete. `whole`: so will be the frame, within this call's bytes.
    void (*begin)(void *context, const struct msgr_message *message, bool whole);
    // The last byte of a message has come.
    void (*end)(void *context, const struct msgr_message *message);
    void *context;
};

// Fills in what comes from the message's front; the object's name goes to `object`.
void msgr_look(struct msgr_message *message, char object[MSGR_OBJECT_BYTES]);

// Bytes of a call.
struct msgr_bytes {
    const struct iovec *v;  // where the next one is, or at the end of the one before
    size_t at, left;        // there; and how many are left of the call
};

void msgr_reset(struct msgr_parser *parser);
// Takes all of them. Sinks are called in the stream's order. When the phase is MSGR_LOST it goes on if a frame begins
// here.
void msgr_feed(struct msgr_parser *parser, struct msgr_bytes bytes, const struct msgr_sink *sink);
// Between two frames this is a small part of it: the other holds nothing.
void msgr_copy(struct msgr_parser *to, const struct msgr_parser *from);
bool msgr_is_magic(const void *data);
