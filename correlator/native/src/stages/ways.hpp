// SPDX-License-Identifier: MIT
// Points that ops must have passed. The model's stages say which ways an op goes. Where one goes from a point to
// another for which there is no stage, two stages lead from the one to the other over a third point, and nearly all ops
// go over that, then its event is missing. So it is where an op passed one of those that the model says come with it,
// and nearly all that did passed it too.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/flat_map.hpp"
#include "base/strings.hpp"
#include "model/plan.hpp"

namespace opline {

class Ways {
  public:
    static constexpr std::uint32_t kNone = ~std::uint32_t{0};
    Ways(const Plan &, StringPool &);
    bool empty() const { return ways_.empty(); }
    // The way from a point to another (pool ids), if it is one without a stage or part of the way round; else kNone.
    std::uint32_t find(std::uint32_t from, std::uint32_t to) const;
    bool has_stage(std::uint32_t way) const { return ways_[way].rounds.empty(); }
    // Is it the third point of one without a stage? An op that passes it elsewhere has not left it out.
    bool leads_round(std::uint32_t way, std::uint32_t point) const;
    void taken(std::uint32_t way, std::uint64_t ops = 1) { ways_[way].ops += ops; }
    bool any_together() const { return !together_.empty(); }
    // Calls taken(way) for what an op with these points, each of which is asked for, did of what comes together.
    template <class Passed, class Taken>  // bool(pool id), void(way)
    void find_together(Passed passed, Taken taken) const {
        for (const auto &t : together_)
            if (std::any_of(t.with.begin(), t.with.end(), passed)) taken(passed(t.point) ? t.both : t.alone);
    }
    std::uint64_t points_missing() const;

  private:
    struct Round {
        std::uint32_t over;           // the point
        std::uint32_t first, second;  // the ways to it and from it
    };
    struct Way {
        std::uint64_t ops = 0;
        std::vector<Round> rounds;  // none: the model has a stage for it
    };
    struct Together {
        std::uint32_t point;
        std::vector<std::uint32_t> with;
        std::uint32_t both, alone;  // the ways of ops that passed it too, and did not
    };
    std::uint32_t way(std::uint32_t from, std::uint32_t to);

    std::vector<Way> ways_;
    std::vector<Together> together_;
    FlatMap<std::uint64_t, std::uint32_t> numbers_;  // by (from, to), from 1
};

}  // namespace opline
