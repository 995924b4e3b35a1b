// SPDX-License-Identifier: MIT
// What the block model keeps in memory: records of open bios, requests and remaps in pools, found by place
// (device, sector) through chains in order of arrival. Private to the block model.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "base/flat_map.hpp"
#include "block/block.hpp"
#include "block/hardware_queues.hpp"
#include "block/learned_order.hpp"

namespace opline::block_model {

using Index = std::uint32_t;
constexpr Index kNil = ~Index{0};

struct Place {
    std::uint32_t dev = 0;
    std::uint64_t sector = 0;
    bool operator==(const Place &o) const { return dev == o.dev && sector == o.sector; }
};
struct PlaceHash {
    std::uint64_t operator()(const Place &p) const {
        return mix64(p.sector ^ (std::uint64_t{p.dev} * 0x9e3779b97f4a7c15u));
    }
};

struct Link {
    Index prev = kNil, next = kNil;
};

// Records with stable indexes; a freed one is used again with its vectors' memory.
template <class T>
class Pool {
  public:
    Index take() {
        ++live_;
        if (free_.empty()) {
            if (made_ % kChunk == 0) chunks_.push_back(std::make_unique<T[]>(kChunk));
            return made_++;
        }
        Index i = free_.back();
        free_.pop_back();
        (*this)[i].reset(blank_);
        return i;
    }
    void give_back(Index i) {
        free_.push_back(i);
        --live_;
    }
    T &operator[](Index i) { return chunks_[i / kChunk][i % kChunk]; }
    const T &operator[](Index i) const { return chunks_[i / kChunk][i % kChunk]; }
    std::size_t live() const { return live_; }

  private:
    static constexpr Index kChunk = 64;
    std::vector<std::unique_ptr<T[]>> chunks_;
    Index made_ = 0;
    T blank_;  // copied: where the compiler knows what is in it, it clears as many bytes in a slower way
    std::vector<Index> free_;
    std::size_t live_ = 0;
};

struct Ends {
    Index head = kNil, tail = kNil;
};

// A list through the records' member L, in order of arrival.
template <class T, Link T::*L>
void append(Pool<T> &pool, Ends &ends, Index i) {
    Link &link = pool[i].*L;
    link = {ends.tail, kNil};
    if (ends.tail != kNil) (pool[ends.tail].*L).next = i;
    else ends.head = i;
    ends.tail = i;
}
template <class T, Link T::*L>
void unlink(Pool<T> &pool, Ends &ends, Index i) {
    const Link link = pool[i].*L;
    if (link.prev != kNil) (pool[link.prev].*L).next = link.next;
    else ends.head = link.next;
    if (link.next != kNil) (pool[link.next].*L).prev = link.prev;
    else ends.tail = link.prev;
    pool[i].*L = Link{};
}

// What begins or ends at one place.
struct PlaceEnds {
    Ends bios;    // without a request
    Ends starts;  // open requests with sectors
    Ends ends;    // those that can still grow
    bool empty() const { return bios.head == kNil && starts.head == kNil && ends.head == kNil; }
};
using Places = FlatMap<Place, PlaceEnds, PlaceHash>;

// Records of one kind, by place, in order of arrival.
template <class T, Link T::*L, Ends PlaceEnds::*E>
class Chain {
  public:
    explicit Chain(Places &places) : places_(places) {}
    void add(Pool<T> &pool, const Place &place, Index i) { append<T, L>(pool, places_[place].*E, i); }
    void remove(Pool<T> &pool, const Place &place, Index i) {
        PlaceEnds *at = places_.find(place);
        if (!at) return;
        unlink<T, L>(pool, at->*E, i);
        if (at->empty()) places_.erase_found(at);
    }
    Index first(const Place &place) const {
        const PlaceEnds *at = places_.find(place);
        return at ? (at->*E).head : kNil;
    }

  private:
    Places &places_;
};

// A bio between its Q and the end of its request (or, of a bio-based device, its own completion).
struct BioRec {
    Bio bio;
    std::uint64_t ordinal = 0;  // of the event that made it: the same in both matchers
    std::uint32_t cpu = kNoCpu;
    Index request = kNil;
    Index parent = kNil;                    // the bio that it was remapped from
    Index family = kNil;                    // the bio that it was split from
    std::int64_t first_getrq_ns = kNoTime;  // of the first of its family's requests
    std::uint64_t first_request = 0;
    std::uint32_t children = 0;  // bios and pending remaps that refer to it
    bool open_place = false;     // in the chain of bios without a request
    bool mapped = false;         // of a bio-based device: remapped to another
    bool finished = false;       // completed, or its children are; kept for those that refer to it
    bool ambiguous = false;
    bool doubtful = false;   // merged where two requests fit; its pointer may still say to which
    bool confirmed = false;  // a pointer says that it is its request's
    Link place, age;
    void reset(const BioRec &blank) { *this = blank; }
};

enum class Step : std::uint8_t {
    kAllocated,
    kInserted,
    kIssued,
    kRequeued,
    kDataDone  // a FUA or PREFLUSH write between its two completions
};

struct Waiting {  // a bio that may be gone by the time it is looked at
    Index bio;
    std::uint64_t id;
    std::int64_t since_ns;
};

// What is known of one CPU's hardware queue for flushes.
struct FlushCpu {
    std::uint64_t done = 0;            // Request::id of the last flush that completed on this CPU; 0: none
    std::uint32_t issued_on = kNoCpu;  // and the CPU that issued it,
    std::int64_t issue_ns = kNoTime;   // when
    bool ambiguous = false;            // it may have been another
    std::uint64_t goes_on = 0;         // what it was for completes behind it: the event that this has come to
    // when the last flush that was issued here, or its data, completed; kNoTime: none
    std::int64_t free_ns = kNoTime;
    std::uint32_t free_cpu = kNoCpu;  // and where
};

struct Device {
    std::uint32_t in_flight = 0, most_in_flight = 0;
    std::uint32_t undecided = 0;  // completions of those that are counted in flight, whose each is is not decided
    std::uint64_t completions = 0;
    CompletionOrder order;
    bool misses_completions = false;            // many never come: what is at the device is not known
    bool has_getrq = false;                     // the trace has getrq events of it
    std::uint64_t last_issue = 0;               // Request::id of the last one that was issued
    std::vector<std::uint64_t> last_issue_on;   // and by each CPU; 0: none
    std::deque<BlockEvent> reissues;            // issues that were taken for a second one of a request in flight
    bool has_issue = false, has_queue = false;  // and issues, and bios that are queued
    // that a request of it took from its allocation to its issue, or from there to its completion
    std::int64_t longest_ns = 0;
    std::vector<Waiting> flush_bios;    // while it has none: bios with PREFLUSH
    Index last_based = kNil;            // the last bio that was remapped from here
    std::vector<Index> flush_waiters;   // requests that a flush precedes, in order of arrival
    std::vector<Index> second_waiters;  // data done, second completion to come
    HardwareQueues queues;
    std::optional<bool> fua;  // it takes FUA writes
    std::uint64_t flush_issues = 0;
    // A thread waits for its flush before it queues the next (blkdev_issue_flush()); where several are made of one (md,
    // dm), it does not. Learned: how often it had none left, and how often one that no flush came behind.
    std::uint64_t flushes_alone = 0, flushes_beside = 0;
    std::int64_t flush_done_ns = kNoTime;  // the last completion of one
    std::int64_t unsure_ns = kNoTime;      // the last completion of one of several flushes, nothing said which
    std::int64_t blind_ns = kNoTime;       // the last completion that several flushes fitted equally well
    std::int64_t doubt_ns = kNoTime;       // the last completion of which it was not sure whose it is
    // flushes that must have been meant by such a one: another's completion is to come
    std::uint64_t unsure = 0;
    // completions to come of waiters that another's has completed, and flushes issued when the last of them was
    std::uint64_t owed = 0, owed_issues = 0;
    std::int64_t waiter_done_ns = kNoTime;  // the last completion of a request that waited for a flush
    FlatMap<std::uint32_t, FlushCpu> flush_cpus;
    std::vector<Index> flushes;      // flush requests that are open
    std::vector<Index> passthrough;  // requests without sectors that are open
};

// A completion that fitted a request as well, and that another one got: when and where it came, and who waits for the
// other.
struct Contested {
    std::int64_t at_ns = kNoTime;
    std::uint32_t cpu = kNoCpu;
    Owner by;
};

constexpr std::uint32_t kManyMissed = 8;  // flushes after which a request did not go on: its completion is lost

struct ReqState {
    std::uint64_t ordinal = 0;        // of the event that made it
    std::uint64_t issue_ordinal = 0;  // of its last issue; 0: none
    Device *device = nullptr;
    Step step = Step::kAllocated;
    std::uint64_t start = 0;                // where its next completion begins
    std::uint32_t remaining = 0;            // sectors that have not completed
    std::uint32_t bio_sectors = 0;          // sum of its bios, to tell a lost merge
    std::uint32_t op = 0;                   // direction bits of rwbs
    std::uint32_t entry_flags = 0;          // rwbs of its bio; 0: not seen
    std::uint64_t dev_completions = 0;      // of its device at its beginning, then at its issue
    std::uint64_t end_order = 0;            // among those that end at one place
    bool at_start = false, at_end = false;  // in the chains
    bool listed = false;                    // in one of its device's lists
    bool in_device = false;                 // counted in flight
    bool completed = false;                 // one of several undecided completions is its own
    bool is_flush = false;                  // the flush machinery's own request
    bool empty_flush = false;               // made of a flush bio: completes without ever being issued
    bool waits_flush = false;               // in its device's flush_waiters
    bool twice = false;                     // completes a second time with 0 sectors
    bool needs_flush = false;               // a flush comes behind its data, or without data behind the first one
    bool flush_done = false;                // the flush that it waited for is complete
    std::int64_t entered_ns = kNoTime;      // began to wait for a flush
    bool started_flush = false;             // it was the first in line: the flush is for it
    bool alone = false;                     // while it waits, no other request of the device has waited for a flush
    // Of a flush: another completed while this one was in flight, and had been issued there; after so many issues.
    std::uint32_t beside_cpu = kNoCpu;
    std::uint64_t beside_issues = 0;
    bool flush_before = false;         // one that served it before is complete as well
    std::uint32_t flush_missed = 0;    // flushes after which it did not go on
    std::uint32_t served_on = kNoCpu;  // the CPU that issued the flush that serves it now,
    std::uint32_t done_cpu = kNoCpu;   // and where that completed
    std::uint64_t waits_for = 0;       // Request::id of the flush that serves it now
};

struct ReqRec : ReqState {
    Request r;
    std::vector<Index> bios;
    std::vector<Contested> contested;  // in order of time
    Link by_start, by_end, age;

    void reset(const ReqRec &blank) {
        static_cast<ReqState &>(*this) = static_cast<const ReqState &>(blank);
        static_cast<RequestState &>(r) = static_cast<const RequestState &>(blank.r);
        r.bios.clear();
        r.owners.clear();
        bios.clear();
        contested.clear();
        by_start = by_end = age = {};
    }
};

// A remap whose bio was not seen at its new place yet.
struct RemapRec {
    Place to;
    Index parent = kNil;
    std::int32_t tid = -1;
    bool ambiguous = false;
    Link place, age;
    void reset(const RemapRec &blank) { *this = blank; }
};

// Lists are short unless steps of every request are missing; then nobody finds their oldest any more, which wait for
// the end of the trace.
inline void enlist(std::vector<Index> &list, Index i) {
    constexpr std::size_t kMost = 1024;
    if (list.size() >= kMost) list.erase(list.begin(), list.begin() + kMost / 2);
    list.push_back(i);
}
inline void forget(std::vector<Index> &list, Index i) {
    const auto it = std::find(list.begin(), list.end(), i);
    if (it != list.end()) list.erase(it);
}

inline constexpr std::uint32_t kDirection =
    rwbs::kWrite | rwbs::kDiscard | rwbs::kRead | rwbs::kFlush | rwbs::kWriteZeroes | rwbs::kZone;
inline bool same_direction(std::uint32_t a, std::uint32_t b) { return ((a ^ b) & kDirection) == 0; }

}  // namespace opline::block_model
