// SPDX-License-Identifier: MIT
// I/Os that outlive the call that queues them (libaio, io_uring). Each is an op: begun by the call, done when its last
// request is, ended by the call that takes its completion. Names no system call; the model says which points are which.
#pragma once
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "base/flat_map.hpp"
#include "block/block.hpp"
#include "op/op.hpp"

namespace opline {

// The last bio with data that a thread queued, to tell a further bio of one I/O from another I/O's.
struct LastBio {
    std::uint32_t dev = 0, nr_sectors = 0, rwbs = 0;
    std::uint64_t end_sector = kNoSector;
    void remember(const Bio &bio) {
        dev = bio.dev;
        nr_sectors = bio.nr_sectors;
        rwbs = bio.rwbs;
        end_sector = bio.sector + bio.nr_sectors;
    }
    // The kernel's direct I/O goes on in another bio where one is full: 256 pages (BIO_MAX_VECS), of which the first
    // and the last may be cut.
    bool continued_by(const Bio &bio) const {
        constexpr std::uint32_t kFull = 255 * 8, kDirection = rwbs::kRead | rwbs::kWrite | rwbs::kDiscard;
        return nr_sectors >= kFull && dev == bio.dev && end_sector == bio.sector &&
               ((rwbs ^ bio.rwbs) & kDirection) == 0;
    }
};

// A call that queues I/Os, or waits for them, from its entry to its exit.
struct IoCall {
    Key queue;
    std::uint32_t space = 0;
    bool submits = false, waits = false;
    bool told = false;                 // each I/O begins with an event of its own
    std::uint32_t announced = 1;       // I/Os that the entry speaks of
    std::int64_t least = 0;            // completions that it waits for; 0: not known
    std::vector<std::uint64_t> ops;    // op refs; the first is the one that began at the entry
    Transition begin;                  // of each of them
    std::vector<std::uint64_t> names;  // of the I/Os that it is to queue, in their order, as far as it says them
    std::uint32_t host = 0, op_class = 0;
    std::string object, key_text;
    std::uint64_t inode = 0, target = 0;  // the file, where all are on one
    std::uint32_t file_dev = 0;
    bool ring = false, has_bio = false;
    LastBio last;
};

// The I/O's bytes are its bios'; what read-ahead brought is more than it asked for.
inline void add_length(Op &op, const Bio &bio) {
    if (bio.rwbs & rwbs::kRahead) op.io.read_ahead = true;
    op.has_length = !op.io.read_ahead;
    op.length_bytes += std::int64_t{bio.nr_sectors} * 512;
}

// What a thread queues without a call: its last bio's op.
struct OwnBio {
    std::uint64_t op = 0;
    LastBio last;
};

// I/Os of one context: what is done and not taken yet.
struct IoQueue {
    struct Taken {
        Transition reap;
        std::int64_t count;
        std::vector<std::uint64_t> names;  // of some of them: which I/Os have them is known when their call returns
    };
    // Name → op ref of an I/O that has not ended; kQueueing: one of a call that has not returned, not known which.
    static constexpr std::uint64_t kQueueing = ~std::uint64_t{0};
    FlatMap<std::uint64_t, std::uint64_t> named;
    bool in_order = false;  // names say nothing: several I/Os have one at a time, or a call took more than it named
    std::deque<std::uint64_t> done;  // op refs, in order of completion
    // Of a ring whose I/Os have no events of their own: op refs of what has been submitted, in this order; among them
    // some that are done.
    std::vector<std::uint64_t> in_flight;
    std::size_t look_at = kLookAtFirst;  // as many in flight: look which are done
    static constexpr std::size_t kLookAtFirst = 64, kMostInFlight = 1024;
    std::vector<Taken> reaped_early;            // taken while the call that queued them had not returned
    std::uint32_t submitting = 0, waiting = 0;  // calls
    bool reap_seen = false, unseen = false;     // unseen: nobody takes them where we look
    // Of a ring whose calls say how many completions the application has taken: this number, modulo 2^32, and the
    // return of the last call.
    std::optional<std::uint32_t> taken;
    Transition returned;
    bool idle() const {
        return done.empty() && named.empty() && in_flight.empty() && submitting == 0 && waiting == 0 && !unseen &&
               !in_order;
    }
};

// The return of a call, as the point at which an I/O's completion was taken. point: pool id.
inline Transition taken_at(Transition call, std::uint32_t point) {
    call.point = point;
    call.spec = kNoSpec;
    call.evidence = Evidence::kKey;
    return call;
}

// Numbers in hexadecimal with commas between them, 0 where one is not known: as many as can be read.
std::vector<std::uint64_t> names_in(const Event &, std::int32_t slot);

}  // namespace opline
