// SPDX-License-Identifier: MIT
// Intervals of time in which events were lost, of one source or of several.
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace opline {

class LostIntervals {
  public:
    // Both ends belong to it.
    void add(std::int64_t begin_ns, std::int64_t end_ns) {
        const auto later = [](std::int64_t at, const auto &interval) { return at < interval.second; };
        by_end_.insert(std::upper_bound(by_end_.begin(), by_end_.end(), end_ns, later), {begin_ns, end_ns});
    }
    bool empty() const { return by_end_.empty(); }
    // Does one share a nanosecond with [begin_ns, end_ns]?
    bool overlap(std::int64_t begin_ns, std::int64_t end_ns) const {
        for (auto it = by_end_.rbegin(); it != by_end_.rend() && it->second >= begin_ns; ++it)
            if (it->first <= end_ns) return true;
        return false;
    }

  private:
    std::vector<std::pair<std::int64_t, std::int64_t>> by_end_;
};

}  // namespace opline
