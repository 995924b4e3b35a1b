// SPDX-License-Identifier: MIT
// A connection of Ceph's messenger, both directions, and the descriptors that stand for it.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "msgr.h"

enum direction { TX, RX };

// What a usual call needs of it comes first: it is one cache line, up to the parser's peer_features.
struct side {
    _Alignas(64) int busy;   // a call is in progress: two at a time have no order
    int disturbed;           // and another one came
    uint64_t announced;      // TX: messages whose event has been written: a send that was cut short is offered again
    uint64_t peer_features;  // that the other direction's banner says; all until that is known
    struct msgr_parser parser;
    bool open;  // RX: a message has been reported as begun, and not yet as whole
    bool said;  // the event msgr_unreadable
};

struct stream {
    int descriptors;     // how many stand for it
    unsigned recording;  // that it has been introduced to
    uint64_t global_id;
    uint32_t local_port, remote_port;
    // Of a call that sends, from its begin to its end:
    size_t offered;             // bytes
    uint64_t announced_before;  // by earlier calls
    uint64_t messages_before;   // the parser's
    bool whole;                 // they are whole frames: they have changed nothing but the parser's count of messages
    struct stream *next_free;
    struct side side[2];
    struct msgr_parser before;  // if they are not: the parser before the call that sends, of which not all may be taken
};

// descriptor → stream, in chunks that are made when needed.
enum { STREAM_CHUNK = 1024, STREAM_CHUNKS = 1024 };
extern struct stream **stream_chunks[STREAM_CHUNKS];

static inline struct stream *stream_at(int fd) {
    if ((unsigned)fd >= STREAM_CHUNK * STREAM_CHUNKS) return NULL;
    struct stream **chunk = __atomic_load_n(&stream_chunks[fd / STREAM_CHUNK], __ATOMIC_ACQUIRE);
    return chunk ? __atomic_load_n(&chunk[fd % STREAM_CHUNK], __ATOMIC_ACQUIRE) : NULL;
}

// What is to be told of a connection besides its messages (connections.c).

extern unsigned stream_recordings;  // how many have begun and ended: odd while somebody records
// A recording that began after the connection did is told of it before its first message. That one recording has ended
// and another begun is seen if any messenger's call falls between them.
void stream_introduce(struct stream *s, int fd, bool recording);
// What the bytes of a call have changed. False: it is no connection of Ceph's.
bool stream_changed(struct stream *s, int fd, enum direction d, bool banner_before, uint32_t mode_before);
