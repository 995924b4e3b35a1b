// SPDX-License-Identifier: MIT
// Whole requests, as BPF programs put them together (tracepoints/request_event.h), taken apart into the steps that the
// block model knows. A record stands where its first step was and says when the others will be: they wait here until
// their time has come, as what an application does meanwhile lies between them.
#pragma once
#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "block/block.hpp"

namespace opline {

// A request with its only bio, or a bio. Times: kNoTime if there is no such step, or if another record has the step.
struct RequestRecord {
    std::uint64_t rq = 0, bio = 0, sector = 0;
    std::uint32_t bytes = 0, dev = 0;
    std::int64_t queue_ns = kNoTime, getrq_ns = kNoTime, complete_ns = kNoTime;
    std::int64_t insert_ns = kNoTime, issue_ns = kNoTime;  // of a request
    std::int64_t merge_ns = kNoTime, named_ns = kNoTime;   // of a bio; named: the bio's request `rq` was issued
    std::int32_t tid = -1, issue_tid = -1;                 // the kernel's numbers
    std::uint32_t cpu = kNoCpu, issue_cpu = kNoCpu, complete_cpu = kNoCpu;
    std::uint32_t rwbs = 0, bio_rwbs = 0;
    std::uint32_t hw_queue = kNoQueue;
    std::int32_t error = 0;
    bool front = false;         // merged before the request's first bio
    std::uint32_t old_dev = 0;  // the partition; 0: none
    std::uint64_t old_sector = 0;
    std::uint64_t cgroup_number = 0;
};

class RequestSteps {
  public:
    static constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();

    // `host`: comes back with each step.
    void request(const RequestRecord &, std::uint32_t host);
    void bio(const RequestRecord &, std::uint32_t host);
    // When the next step is; kNone: none waits.
    std::int64_t next_ns() const { return next_ns_; }
    // The next step, with the kernel's number of the thread. Equal times: in the order of a request's steps.
    BlockEvent take(std::uint32_t &host);

  private:
    struct Turn {
        std::int64_t ts_ns;
        std::uint32_t rank, room;
        std::uint64_t number;
        bool operator<(const Turn &o) const {  // the heap's top is the last in this order
            if (ts_ns != o.ts_ns) return ts_ns > o.ts_ns;
            return rank != o.rank ? rank > o.rank : number > o.number;
        }
    };
    struct StepToCome {
        BlockEvent event;
        std::uint32_t host;
    };
    void add(BlockKind, std::int64_t ts_ns, const BlockEvent &like, std::uint32_t host);
    void begins(const RequestRecord &, const BlockEvent &like, std::uint32_t host);

    std::vector<Turn> turns_;
    std::vector<StepToCome> waiting_;
    std::vector<std::uint32_t> free_;
    std::uint64_t number_ = 0;
    std::int64_t next_ns_ = kNone;
};

}  // namespace opline
