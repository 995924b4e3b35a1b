// SPDX-License-Identifier: MIT
// Holes in a collector's numbers, and the intervals in which the tracer discarded events and counted them. What the
// tracer discarded in a stream it says at the stream's next packet: which holes that explains is known at the end only.
#pragma once
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

#include "event/event.hpp"
#include "sched/numbers.hpp"

namespace opline {

class Holes {
  public:
    void add(const Numbers::Hole &hole) { holes_.push_back(hole); }
    // kNoTime: from the begin, to the end.
    void discarded(std::int64_t begin_ns, std::int64_t end_ns) {
        told_.emplace_back(begin_ns, end_ns == kNoTime ? std::numeric_limits<std::int64_t>::max() : end_ns);
    }
    // Calls `look` once for each hole without a discarded interval nearby.
    template <class Look>  // void(const Numbers::Hole &)
    void each_unexplained(const Look &look) {
        std::sort(told_.begin(), told_.end());
        std::int64_t latest_ns = std::numeric_limits<std::int64_t>::min();
        for (auto &[begin_ns, end_ns] : told_) end_ns = latest_ns = std::max(latest_ns, end_ns);
        for (const Numbers::Hole &hole : holes_) {
            const auto after = std::upper_bound(told_.begin(), told_.end(), hole.end_ns,
                                                [](std::int64_t ns, const auto &t) { return ns < t.first; });
            if (after == told_.begin() || std::prev(after)->second < hole.begin_ns) look(hole);
        }
        holes_.clear();
    }

  private:
    std::vector<Numbers::Hole> holes_;
    std::vector<std::pair<std::int64_t, std::int64_t>> told_;  // begins, ends
};

}  // namespace opline
