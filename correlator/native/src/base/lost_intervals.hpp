// SPDX-License-Identifier: MIT
// Intervals of time in which events were lost, of one source or of several.
#pragma once
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

namespace opline {

class LostIntervals {
  public:
    // Both ends are included.
    void add(std::int64_t begin_ns, std::int64_t end_ns) {
        const auto later = [](std::int64_t at, const Interval &interval) { return at < interval.end_ns; };
        const auto place = std::upper_bound(by_end_.begin(), by_end_.end(), end_ns, later);
        const std::int64_t first_ns = place == by_end_.end() ? begin_ns : std::min(begin_ns, place->first_begin_ns);
        const auto added = by_end_.insert(place, {end_ns, first_ns});
        for (auto before = std::make_reverse_iterator(added);
             before != by_end_.rend() && before->first_begin_ns > begin_ns; ++before)
            before->first_begin_ns = begin_ns;
    }
    bool empty() const { return by_end_.empty(); }
    // Whether an interval shares a nanosecond with [begin_ns, end_ns].
    bool overlap(std::int64_t begin_ns, std::int64_t end_ns) const {
        const auto before = [](const Interval &interval, std::int64_t at) { return interval.end_ns < at; };
        const auto place = std::lower_bound(by_end_.begin(), by_end_.end(), begin_ns, before);
        return place != by_end_.end() && place->first_begin_ns <= end_ns;
    }

  private:
    struct Interval {
        std::int64_t end_ns;
        std::int64_t first_begin_ns;  // of this interval and all intervals with a later end
    };
    std::vector<Interval> by_end_;
};

}  // namespace opline
