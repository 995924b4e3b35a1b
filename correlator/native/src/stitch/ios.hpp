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

// The last bio with data queued by a thread: tells a further bio of the same I/O from the first bio of the next I/O.
struct LastBio {
    std::uint32_t dev = 0, nr_sectors = 0, rwbs = 0;
    std::uint64_t end_sector = kNoSector;
    void remember(const Bio &bio) {
        dev = bio.dev;
        nr_sectors = bio.nr_sectors;
        rwbs = bio.rwbs;
        end_sector = bio.sector + bio.nr_sectors;
    }
    // The kernel's direct I/O continues in another bio when a bio is full: 256 pages (BIO_MAX_VECS); the first and the
    // last page may be partial.
    bool continued_by(const Bio &bio) const {
        constexpr std::uint32_t kFull = 255 * 8, kDirection = rwbs::kRead | rwbs::kWrite | rwbs::kDiscard;
        return nr_sectors >= kFull && dev == bio.dev && end_sector == bio.sector &&
               ((rwbs ^ bio.rwbs) & kDirection) == 0;
    }
};

// A call for queueing I/Os or waiting for I/Os, from entry to exit.
struct IoCall {
    Key queue;
    std::uint32_t space = 0;
    bool submits = false, waits = false;
    bool told = false;                 // each I/O has its own begin event
    std::uint32_t announced = 1;       // number of I/Os, as told by the entry
    std::int64_t least = 0;            // completions awaited by the call; 0: unknown
    std::vector<std::uint64_t> ops;    // op refs; the first op began at the entry
    Transition begin;                  // the begin of each op
    std::vector<std::uint64_t> names;  // names of the future I/Os, in order, as far as the entry has names
    std::uint32_t host = 0, op_class = 0;
    std::string object, key_text;
    std::uint64_t inode = 0, target = 0;  // the file, if all I/Os have the same file
    std::uint32_t file_dev = 0;
    FileName file;
    bool ring = false, has_bio = false;
    LastBio last;
};

// An I/O has the length of its bios. With read-ahead the bios have more bytes than the I/O asked for.
inline void add_length(Op &op, const Bio &bio) {
    if (bio.rwbs & rwbs::kRahead) op.io.read_ahead = true;
    op.has_length = !op.io.read_ahead;
    op.length_bytes += std::int64_t{bio.nr_sectors} * 512;
}

// The last bio queued by a thread outside of a call, with the bio's op.
struct OwnBio {
    std::uint64_t op = 0;
    LastBio last;
};

// I/Os of one context, with the done I/Os whose completion is not taken yet.
struct IoQueue {
    struct Taken {
        Transition reap;
        std::int64_t count;
        std::vector<std::uint64_t> names;  // names of some taken I/Os; the I/Os are known after their call's return
    };
    // Name → op ref of an I/O that has not ended. kQueueing: an I/O of a call without return; the op is not known yet.
    static constexpr std::uint64_t kQueueing = ~std::uint64_t{0};
    FlatMap<std::uint64_t, std::uint64_t> named;
    bool in_order = false;  // names are useless: several I/Os share a name, or a call took more completions than names
    std::deque<std::uint64_t> done;  // op refs, in order of completion
    // For a ring whose I/Os have no own events: op refs of submitted I/Os, in order of submission. Some of the I/Os are
    // done.
    std::vector<std::uint64_t> in_flight;
    std::size_t look_at = kLookAtFirst;  // with as many I/Os in flight: remove the done I/Os
    static constexpr std::size_t kLookAtFirst = 64, kMostInFlight = 1024;
    std::vector<Taken> reaped_early;            // taken before the return of the submitting call
    std::uint32_t submitting = 0, waiting = 0;  // calls
    bool reap_seen = false, unseen = false;     // unseen: the trace does not show who takes completions
    // For a ring whose calls tell the number of completions taken by the application: this number, modulo 2^32, and the
    // return of the last call.
    std::optional<std::uint32_t> taken;
    Transition returned;
    bool idle() const {
        return done.empty() && named.empty() && in_flight.empty() && submitting == 0 && waiting == 0 && !unseen &&
               !in_order;
    }
};

// The return of a call as the point where the application took an I/O's completion. point: pool id.
inline Transition taken_at(Transition call, std::uint32_t point) {
    call.point = point;
    call.spec = kNoSpec;
    call.evidence = Evidence::kKey;
    return call;
}

// Hexadecimal numbers separated by commas; 0: an unknown number. Ends at the first unreadable number.
std::vector<std::uint64_t> names_in(const Event &, std::int32_t slot);

}  // namespace opline
