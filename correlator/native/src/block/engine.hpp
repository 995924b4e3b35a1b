// SPDX-License-Identifier: MIT
// One matcher of block events: by pointer (falling back on sectors where an event has none) or by sector only.
// BlockModel runs one that reports, and beside it, where events carry pointers, one of the other kind that only
// concludes. Private to the block model.
//
// The matcher is the front of its parts, each an object with its own state: Bios, Requests, the Finder of the request
// that an event is about, Merges, Reissues, Flushes, and what the matcher knows of losses (StepEvidence, Contests,
// LostRequests).
#pragma once
#include <cstdint>

#include "block/contests.hpp"
#include "block/flushes.hpp"
#include "block/lost_requests.hpp"
#include "block/merges.hpp"
#include "block/reissues.hpp"
#include "block/undecided.hpp"

namespace opline::block_model {

class Engine {
  public:
    // hooks: nullptr for a matcher that only draws conclusions.
    Engine(bool pointers, const BlockModel::Hooks *hooks, BlockShared *shared = nullptr)
        : m_(pointers, hooks, shared) {}
    Engine(const Engine &) = delete;

    // ordinal: of the event, from 1, rising.
    Fate apply(const BlockEvent &, std::uint64_t ordinal);
    void pass(std::int64_t ts_ns, std::uint64_t ordinal);  // the same for an event without a bio and a request
    void woken(std::int32_t tid, std::uint32_t cpu, std::int64_t ts_ns);           // BlockModel::woken
    void decide(std::int64_t begin_ns, std::int64_t end_ns, std::int64_t now_ns);  // BlockModel::decide
    void finish();

    const Conclusion &said() const { return m_.said; }
    void numbered() { m_.numbered = true; }
    void know(std::uint32_t dev, const DeviceFacts &);
    void conclude() { m_.concludes = true; }  // from now on conclusions are read
    const Bios &bios() const { return bios_; }
    const Requests &requests() const { return requests_; }
    BlockCounts &counts() { return m_.counts; }

  private:
    Fate step(const BlockEvent &);
    Fate queue(const BlockEvent &);
    Fate getrq(const BlockEvent &);
    Fate insert(const BlockEvent &);
    Fate issue(const BlockEvent &);
    Fate requeue(const BlockEvent &);
    Fate complete(const BlockEvent &);
    Fate completed_whole(const BlockEvent &, Index);
    void decide_completions(bool at_end);
    void give(const Undecided::Decision &);
    Index completed_unissued(const BlockEvent &);
    Index issue_of_bios(const BlockEvent &);
    Fate rq_remap(const BlockEvent &);

    Matching m_;
    StepEvidence evidence_{m_};
    Bios bios_{m_, evidence_};
    Requests requests_{m_, evidence_, bios_};
    LostRequests lost_{m_, evidence_, requests_};
    Finder finder_{m_, evidence_, bios_, requests_};
    Merges merges_{m_, evidence_, bios_, requests_, finder_};
    Reissues reissues_{m_, bios_, requests_, finder_};
    Contests contests_{m_, evidence_, requests_};
    Undecided undecided_{m_, evidence_, requests_};
    std::vector<Index> equals_;  // requests that fit the current completion equally well
    Flushes flushes_{m_, bios_, requests_, evidence_, contests_};
};

}  // namespace opline::block_model
