// SPDX-License-Identifier: MIT
// Which open request an event is about: by its pointer, or by device, sector, length and direction.
#pragma once
#include "block/requests.hpp"

namespace opline::block_model {

class Finder {
  public:
    Finder(Matching &m, StepEvidence &evidence, Bios &bios, Requests &requests)
        : m_(m), evidence_(evidence), bios_(bios), requests_(requests) {}

    Found request_for(const BlockEvent &, BlockKind);
    Found request_at(const BlockEvent &, BlockKind);
    // `mark`: of several that fit, each is ambiguous from now on.
    Found merge_target(const BlockEvent &, bool front, bool mark);
    bool can_be_about(const BlockEvent &, const ReqRec &) const;
    // Requests that the completion fits as well as this one, itself among them.
    void fit_as_well(const BlockEvent &, Index best, std::vector<Index> &found);
    // The request leaves its thread's plug with this event: the order of the plug is learned.
    void note_insert(const BlockEvent &e, const ReqRec &rec) { note(inserts_, e, rec); }
    void note_issue(const BlockEvent &e, const ReqRec &rec) { note(issues_, e, rec); }

  private:
    enum class Tie : std::uint8_t { kFirst, kLastOfPlug, kIssuedFirst, kIssuedLast };
    template <class Rank>
    Found choose(const Place &, Rank rank, bool tie_decides, bool mark = true, Tie = Tie::kFirst);
    bool covers(const ReqRec &, const BlockEvent &) const;
    bool presumed_lost(const ReqRec &);
    void note_order(const Place &, Index completed);
    int rank_to_complete(const BlockEvent &, const ReqRec &) const;
    void note(PlugOrder &order, const BlockEvent &e, const ReqRec &rec) const {
        if (rec.step == Step::kAllocated && rec.r.queue_tid == e.tid && !rec.r.ambiguous)
            order.note(e.tid, rec.ordinal, m_.now);
    }

    Matching &m_;
    StepEvidence &evidence_;
    Bios &bios_;
    Requests &requests_;
    PlugOrder issues_, inserts_;
};

}  // namespace opline::block_model
