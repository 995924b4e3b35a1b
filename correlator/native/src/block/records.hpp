// SPDX-License-Identifier: MIT
// The memory of the block model: records of open bios, requests and remaps in pools, found by place
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

// Records with stable indexes. A new record may reuse a freed record, with the memory of its vectors.
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
    T blank_;  // copied: for a constant the compiler clears the same bytes in a slower way
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

// Bios and requests that begin or end at one place.
struct PlaceEnds {
    Ends bios;    // without a request
    Ends starts;  // open requests with sectors
    Ends ends;    // open requests that can still grow
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
    std::uint64_t ordinal = 0;  // of the event of the Q: the same in both matchers
    std::uint32_t cpu = kNoCpu;
    Index request = kNil;
    Index parent = kNil;                    // the bio before a remap
    Index family = kNil;                    // the bio before a split
    std::int64_t first_getrq_ns = kNoTime;  // of the family's first request
    std::uint64_t first_request = 0;
    std::uint32_t children = 0;  // bios and pending remaps with this parent
    bool open_place = false;     // in the chain of bios without a request
    bool mapped = false;         // on a bio-based device: remapped to another device
    bool finished = false;       // the bio, or its children, are complete; the record is kept for other records
    bool ambiguous = false;
    bool doubtful = false;   // merged while two requests fitted; a pointer may still decide
    bool confirmed = false;  // a pointer confirms the request
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

struct Waiting {  // a bio that may be gone at the next look
    Index bio;
    std::uint64_t id;
    std::int64_t since_ns;
};

// Facts about the hardware queue of one CPU, for flushes.
struct FlushCpu {
    std::uint64_t done = 0;            // Request::id of the last flush that completed on this CPU; 0: none
    std::uint32_t issued_on = kNoCpu;  // the CPU of its issue
    std::int64_t issue_ns = kNoTime;   // the time of its issue
    bool ambiguous = false;            // the completion may be another flush's
    std::uint64_t goes_on = 0;         // the served requests complete behind the flush: the latest event of that run
    // completion of the last flush issued here, or of its data; kNoTime: none
    std::int64_t free_ns = kNoTime;
    std::uint32_t free_cpu = kNoCpu;  // the CPU of that completion
};

struct Device {
    std::uint32_t in_flight = 0, most_in_flight = 0;
    std::uint32_t undecided = 0;  // completions not yet assigned to one of the requests in flight
    std::uint64_t completions = 0;
    CompletionOrder order;
    bool misses_completions = false;            // many never come: the requests at the device are unknown
    bool has_getrq = false;                     // the trace has getrq events of the device
    std::uint64_t last_issue = 0;               // Request::id of the last issued request
    std::vector<std::uint64_t> last_issue_on;   // the same by CPU; 0: none
    std::deque<BlockEvent> reissues;            // issues like a second issue of a request in flight
    bool has_issue = false, has_queue = false;  // the trace has issues, and Q of bios
    // the longest time of a request from allocation to issue, or from issue to completion
    std::int64_t longest_ns = 0;
    std::vector<Waiting> flush_bios;    // bios with PREFLUSH, before the first request
    Index last_based = kNil;            // the last bio remapped from this device
    std::vector<Index> flush_waiters;   // requests preceded by a flush, in order of arrival
    std::vector<Index> second_waiters;  // data done, second completion to come
    HardwareQueues queues;
    std::optional<bool> fua;  // the device takes FUA writes
    std::uint64_t flush_issues = 0;
    // A thread waits for its flush before queueing the next flush (blkdev_issue_flush()), unless md or dm make several
    // flushes from one. Learned: how many flushes threads queued without an open flush, and how many behind an open
    // flush without any completed flush since the begin of the latter.
    std::uint64_t flushes_alone = 0, flushes_beside = 0;
    std::int64_t flush_done_ns = kNoTime;  // the last completion of a flush
    std::int64_t unsure_ns = kNoTime;      // the last completion of a flush among several that no event told apart
    std::int64_t blind_ns = kNoTime;       // the last completion with several equally fitting flushes
    std::int64_t doubt_ns = kNoTime;       // the last completion with an unsure request
    // flushes that owned such a completion: another flush's completion is to come
    std::uint64_t unsure = 0;
    // completions still to come for waiters ended by another request's completion; the flushes issued at the last such
    // end
    std::uint64_t owed = 0, owed_issues = 0;
    std::int64_t waiter_done_ns = kNoTime;  // the last completion of a request that waited for a flush
    FlatMap<std::uint32_t, FlushCpu> flush_cpus;
    std::vector<Index> flushes;      // flush requests that are open
    std::vector<Index> passthrough;  // requests without sectors that are open
};

// A completion assigned to another request that fits this request as well: time and CPU, and the owner of the other
// request.
struct Contested {
    std::int64_t at_ns = kNoTime;
    std::uint32_t cpu = kNoCpu;
    Owner by;
};

// limit of served flushes without an effect on a request: then the request's completion is lost
constexpr std::uint32_t kManyMissed = 8;

struct ReqState {
    std::uint64_t ordinal = 0;        // of the event of its first step
    std::uint64_t issue_ordinal = 0;  // of its last issue; 0: none
    Device *device = nullptr;
    Step step = Step::kAllocated;
    std::uint64_t start = 0;                // the first sector of its next completion
    std::uint32_t remaining = 0;            // incomplete sectors
    std::uint32_t bio_sectors = 0;          // sum of its bios, to detect a lost merge
    std::uint32_t op = 0;                   // direction bits of rwbs
    std::uint32_t entry_flags = 0;          // rwbs of its bio; 0: not seen
    std::uint64_t dev_completions = 0;      // of its device at the request's begin, then at its issue
    std::uint64_t end_order = 0;            // among requests that end at one place
    bool at_start = false, at_end = false;  // in the chains
    bool listed = false;                    // in a list of the device
    bool in_device = false;                 // counted in flight
    bool completed = false;                 // has one of several undecided completions
    bool is_flush = false;                  // the flush machinery's own request
    bool empty_flush = false;               // of a flush bio: completes without an issue
    bool waits_flush = false;               // in flush_waiters of the device
    bool twice = false;                     // completes a second time with 0 sectors
    bool needs_flush = false;               // a flush follows the data, or, without data, the first flush
    bool flush_done = false;                // the awaited flush is complete
    std::int64_t entered_ns = kNoTime;      // began to wait for a flush
    bool started_flush = false;             // first in line: the flush serves this request
    bool alone = false;                     // no other request of the device has waited for a flush meanwhile
    // For a flush: the issue CPU of another flush that completed meanwhile, and the device's flushes until then.
    std::uint32_t beside_cpu = kNoCpu;
    std::uint64_t beside_issues = 0;
    bool flush_before = false;         // an earlier flush for this request is complete as well
    std::uint32_t flush_missed = 0;    // flushes without an effect on the waiter
    std::uint32_t served_on = kNoCpu;  // the CPU that issued the serving flush
    std::uint32_t done_cpu = kNoCpu;   // the CPU of that flush's completion
    std::uint64_t waits_for = 0;       // Request::id of the serving flush
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

// A remap before the Q of its bio at the new place.
struct RemapRec {
    Place to;
    Index parent = kNil;
    std::int32_t tid = -1;
    bool ambiguous = false;
    Link place, age;
    void reset(const RemapRec &blank) { *this = blank; }
};

// Lists are short unless steps of every request are missing. Then the oldest records leave the list, and wait for the
// end of the trace.
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
