// SPDX-License-Identifier: MIT
// A thread's records on their way to the collector: one writer, one reader, in memory that both have. The layout is an
// interface between the shim and the collector of the same build only.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

// clang-format off
#define RING_EVENTS(X)                                                                                                 \
    X(msgr_send_enter) X(msgr_send_exit) X(msgr_recv) X(msgr_epoll_return) X(msgr_tx_msg) X(msgr_rx_msg)               \
    X(msgr_connect) X(msgr_session) X(msgr_unreadable)                                                                 \
    X(aio_submit) X(aio_submit_exit) X(aio_complete) X(uring_submit) X(uring_submit_exit) X(uring_complete)            \
    X(sysio_pwrite_enter) X(sysio_pwrite_exit) X(sysio_pread_enter) X(sysio_pread_exit) X(sysio_fdatasync_enter)       \
    X(sysio_fdatasync_exit) X(sysio_fsync_enter) X(sysio_fsync_exit) X(sysio_sfr_enter) X(sysio_sfr_exit)              \
    X(radoscxx_aio_operate_enter) X(radoscxx_aio_operate_exit) X(radoscxx_get_return_value) X(rados_aio_exit)          \
    X(rados_get_return_value) X(radoscxx_wait_enter) X(radoscxx_wait_exit) X(rados_wait_enter) X(rados_wait_exit)      \
    X(rados_release) X(radoscxx_completion_cb) X(rados_completion_cb) X(rados_aio_enter) X(rados_sync_enter)           \
    X(rados_sync_exit)
#define RING_KIND(event) RING_##event,
enum ring_kind { RING_EVENTS(RING_KIND) RING_KINDS };
#undef RING_KIND
// clang-format on

enum {
    RING_VERSION = 2,
    RING_HEADER_BYTES = 4096,  // a page: the data is mapped twice behind it, so that every record is in one piece
    RING_BYTES = 8 << 20,      // taken up as far as it is used
    // taken up at once: a thread whose records are taken out in time uses no more of it than this
    RING_NEAR_BYTES = 256 << 10,
    RING_TEXT_BYTES = 4096,                         // longer texts are cut
    RING_RECORD_BYTES = 2 * RING_TEXT_BYTES + 256,  // the longest record
    RING_MAPPED_BYTES = RING_HEADER_BYTES + 2 * RING_BYTES,
};
enum ring_closed { RING_OPEN, RING_CLOSED, RING_REFUSED };  // refused: never taken, what is in it is lost
// The collector's socket, in the folder of the session daemon's: a datagram is a ring's descriptor.
#define RING_SOCKET "opline-ceph"

struct event_ring {
    // written by the thread
    _Alignas(64) uint64_t head;  // bytes written since the beginning
    // what was written by then, when the ring was empty and writing began at the front again
    uint64_t base;
    uint64_t lost;     // records that found no room
    uint32_t writing;  // a record is being written: its time is taken, `head` does not have it yet
    uint32_t done;     // the thread has ended
    // written by the collector
    _Alignas(64) uint64_t tail;  // bytes taken out
    uint32_t closed;             // nobody takes out any more: one of ring_closed
    // written once
    _Alignas(64) uint32_t version;
    int32_t pid, tid;  // as the process sees itself, like LTTng's contexts vpid and vtid
    char name[16];     // the thread's, at its first event, like procname
};

// A record: this, then its arguments in their order: integers and pointers in 8 bytes; texts as their length with the
// final NUL in 8 bytes and then padded to a multiple of 8; a message as struct ring_message and its front.
struct ring_record {
    uint32_t words : 11;  // of 8 bytes: its length
    uint32_t kind : 8;
    uint32_t cpu : 13;
    uint32_t lost;  // low bits of lost in the ring's head when it was written
    uint64_t time_ns;
};

// Behind it its front, if `front_bytes` is not 0, without the first `front_skipped` bytes.
struct ring_message {
    uint64_t tid, seq;
    uint32_t flen;
    uint16_t type, version, front_bytes, front_skipped;
    uint32_t unused;
};

// The ring behind a descriptor, its data twice; NULL: there is no room.
static inline struct event_ring *ring_map(int fd) {
    char *at = (char *)mmap(NULL, RING_MAPPED_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) return NULL;
    char *again = at + RING_HEADER_BYTES + RING_BYTES;
    if (mmap(again, RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, RING_HEADER_BYTES) == again)
        return (struct event_ring *)at;
    munmap(at, RING_MAPPED_BYTES);
    return NULL;
}
