// SPDX-License-Identifier: MIT
// The numbers that a collector gives its events, one after the other on each CPU: one that did not come is an event
// that is missing, unless the collector said that it had lost it.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/flat_map.hpp"

namespace opline {

class Numbers {
  public:
    struct Hole {
        std::uint64_t first = 0, past = 0, missing = 0;  // numbers in [first, past); the count of events still missing
        std::int64_t begin_ns = 0, end_ns = 0;           // times of the events before and after the hole
    };
    // `of`: the collector and the CPU. `missed` is called for each hole as soon as no event can arrive late.
    template <class Missed>  // void(const Hole &)
    void passed(std::uint64_t of, std::uint64_t number, std::int64_t ts_ns, Missed missed) {
        Counted &c = counted_[of];
        if (number <= c.last) {
            const auto hole = std::find_if(c.holes.begin(), c.holes.end(),
                                           [number](const Hole &h) { return h.first <= number && number < h.past; });
            if (hole != c.holes.end()) {
                --hole->missing;  // the event was overtaken
                return;
            }
            end(c, missed);  // a collector that starts again
        } else if (const std::uint64_t gap = number - c.last - 1; c.last != 0 && gap != 0 && gap < kMostMissing) {
            const std::uint64_t told = std::min(gap, c.told);
            c.told -= told;
            c.holes.push_back({c.last + 1, number, gap - told, c.last_ns, ts_ns});
        }
        c.last = number;
        c.last_ns = ts_ns;
        while (!c.holes.empty() && number - c.holes.front().past > kOvertaken) {
            close(c.holes.front(), missed);
            c.holes.erase(c.holes.begin());
        }
    }
    // The collector tells a loss of `count` events, right before its event at `ts_ns`.
    void told(std::uint64_t of, std::uint64_t count, std::int64_t ts_ns) {
        Counted &c = counted_[of];
        // the merge put an event of the same time before the told loss
        if (!c.holes.empty() && c.holes.back().end_ns == ts_ns) {
            const std::uint64_t of_hole = std::min(c.holes.back().missing, count);
            c.holes.back().missing -= of_hole;
            count -= of_hole;
        }
        c.told += count;
    }
    // The tracer counted a loss, or the trace has ended.
    template <class Missed>
    void end(Missed missed) {
        counted_.for_each([&](std::uint64_t, Counted &c) { end(c, missed); });
    }

  private:
    // Few events overtake another event: only events of the same time in another stream, by the merge. A hole larger
    // than the largest ring buffer means a damaged number.
    static constexpr std::uint64_t kOvertaken = 64, kMostMissing = 1u << 22;
    struct Counted {
        std::uint64_t last = 0, told = 0;
        std::int64_t last_ns = 0;
        std::vector<Hole> holes;
    };
    template <class Missed>
    static void close(const Hole &hole, Missed &missed) {
        if (hole.missing != 0) missed(hole);
    }
    template <class Missed>
    static void end(Counted &c, Missed &missed) {
        for (const Hole &hole : c.holes) close(hole, missed);
        c = {};
    }
    FlatMap<std::uint64_t, Counted> counted_;
};

}  // namespace opline
