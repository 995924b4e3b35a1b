// SPDX-License-Identifier: MIT
// An op's critical path, walked backwards from its end: which point let which one happen, and where a request was
// waited for. Its pieces are the stages.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "base/strings.hpp"
#include "identity/hosts.hpp"
#include "model/plan.hpp"
#include "stages/cuts.hpp"
#include "stages/stage_names.hpp"
#include "stages/wait_cuts.hpp"

namespace opline {

class CriticalPath {
  public:
    CriticalPath(const Plan &, StringPool &, StageNames &, WaitCuts &, const Hosts &);
    // `out` is overwritten. An op without end gets just transitions. `keeps_waits`: waits stay whole, to be cut later
    // by the work of their threads.
    void run(const Op &op, Attribution &out, bool keeps_waits = false);

  private:
    // An end of a stage: the point's name and label.
    struct Place {
        explicit Place(std::uint32_t step) : point(step), label(step) {}
        Place(std::uint32_t point, std::uint32_t label, std::ptrdiff_t at)
            : point(point), label(label), at(static_cast<std::int32_t>(at)) {}
        std::uint32_t point, label;
        std::int32_t at = -1;  // the transition
    };
    void place(const Op &op, Attribution &out);
    void mark_path(const Op &op, Attribution &out);
    std::int64_t waits_since(const Op &op, std::uint32_t joined_order) const;
    std::ptrdiff_t declared_predecessor(const Attribution &, std::ptrdiff_t current,
                                        const std::vector<std::uint32_t> &declared) const;
    std::ptrdiff_t predecessor(const Attribution &, std::ptrdiff_t current) const;
    bool aside(const PlacedTransition &) const;
    bool undecided(const PlacedTransition &before, const PlacedTransition &received) const;
    bool may_cut(const Attribution &, std::ptrdiff_t from, std::ptrdiff_t to, const RequestCut &) const;
    bool connected(const Attribution &, std::ptrdiff_t from, std::ptrdiff_t to) const;
    std::uint32_t kind_by_threads(const Attribution &, Place from, Place to) const;
    void cut(Attribution &, Place from, Place to, std::int64_t begin_ns, std::int64_t end_ns, std::int64_t tid,
             std::uint64_t request, bool is_known);
    std::int64_t cut_request(Attribution &, const RequestCut &, std::int64_t floor_ns, Place &first);

    const Plan &plan_;
    StageNames &names_;
    WaitCuts &waits_;
    const Hosts &hosts_;
    bool keeps_waits_ = false;
    std::vector<std::vector<std::uint32_t>> after_;                     // per PointSpec: point ids
    std::vector<std::pair<std::uint32_t, std::uint32_t>> recurrences_;  // in this op: (point, number of passes)
};

}  // namespace opline
