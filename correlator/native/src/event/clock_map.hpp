// SPDX-License-Identifier: MIT
// The monotone map from one host's clock to the clock of a cluster (docs/internals/hosts.md): knots, lines
// between them, in integers.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "event/event.hpp"

namespace opline {

class ClockMap {
  public:
    using Knot = std::pair<std::int64_t, std::int64_t>;  // (the host's own clock, the cluster's), ns

    ClockMap() = default;
    // Throws std::runtime_error where the map is not monotone.
    explicit ClockMap(std::vector<Knot> knots) : knots_(std::move(knots)) {
        for (std::size_t i = 1; i < knots_.size(); ++i)
            if (knots_[i].first <= knots_[i - 1].first || knots_[i].second < knots_[i - 1].second)
                throw std::runtime_error("The knots of a clock map are not in order");
    }
    explicit operator bool() const { return !knots_.empty(); }

    // Rounds down, so that durations add up. Before the first knot and behind the last knot the offset is constant.
    // `hint`: place of the last time, kept by the caller; calls come in order.
    std::int64_t at(std::int64_t own_ns, std::size_t &hint) const {
        if (knots_.empty() || own_ns == kNoTime) return own_ns;
        if (own_ns < knots_.front().first) return moved(own_ns, knots_.front());
        if (own_ns >= knots_.back().first) return moved(own_ns, knots_.back());
        if (hint + 1 >= knots_.size() || own_ns < knots_[hint].first || own_ns >= knots_[hint + 1].first) {
            const auto behind = std::upper_bound(knots_.begin(), knots_.end(), own_ns,
                                                 [](std::int64_t ns, const Knot &k) { return ns < k.first; });
            hint = static_cast<std::size_t>(behind - knots_.begin()) - 1;
        }
        const auto [from, to] = knots_[hint];
        const auto [next_from, next_to] = knots_[hint + 1];
        const auto rise = static_cast<__int128>(own_ns - from) * (next_to - to) / (next_from - from);
        return to + static_cast<std::int64_t>(rise);
    }
    std::int64_t at(std::int64_t own_ns) const {
        std::size_t nowhere = knots_.size();
        return at(own_ns, nowhere);
    }
    // A time of the host's own clock that at() maps to `ns`. A fast clock sometimes has two such times: the first.
    std::int64_t own_at(std::int64_t ns) const {
        if (knots_.empty() || ns == kNoTime) return ns;
        const auto behind = std::lower_bound(knots_.begin(), knots_.end(), ns,
                                             [](const Knot &k, std::int64_t at_ns) { return k.second < at_ns; });
        if (behind == knots_.begin()) return moved(ns, {knots_.front().second, knots_.front().first});
        const auto [from, to] = *std::prev(behind);
        if (behind == knots_.end()) return moved(ns, {to, from});
        const auto [next_from, next_to] = *behind;
        // the least own time whose rise, rounded down, is the wanted rise
        const auto run = static_cast<__int128>(ns - to) * (next_from - from), rise = __int128{next_to - to};
        return from + static_cast<std::int64_t>((run + rise - 1) / rise);
    }

  private:
    static std::int64_t moved(std::int64_t ns, const Knot &knot) {
        std::int64_t out = 0;  // a damaged clock has any value
        return __builtin_add_overflow(ns, knot.second - knot.first, &out) ? ns : out;
    }
    std::vector<Knot> knots_;
};

// A host's own time as a time of the run. Without a map both are the same.
inline std::int64_t time_of_run(const ClockMap *map, std::int64_t own_ns) { return map ? map->at(own_ns) : own_ns; }

}  // namespace opline
