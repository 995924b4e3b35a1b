// SPDX-License-Identifier: MIT
// Points that ops must have passed. The model's stages say which ways an op goes. Where one goes from a point to
// another for which there is no stage, two stages lead from the one to the other over a third point, and nearly all ops
// go over that, then its event is missing. So it is where an op passed one of those that the model says come with it,
// and nearly all that did passed it too; and where it passed points less often than those that the model says come with
// each of them.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
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
    // Calls taken(way, times) for what an op that passed each point (pool id) so often did of what comes together.
    template <class Taken>  // void(way, std::uint32_t)
    void find_together(const std::vector<std::uint32_t> &passes, Taken taken) const {
        auto all = [&](const std::vector<std::uint32_t> &points) {
            std::uint32_t n = 0;
            for (std::uint32_t point : points) n += point < passes.size() ? passes[point] : 0;
            return n;
        };
        for (const auto &t : together_) {
            const std::uint32_t most = t.each ? ~std::uint32_t{0} : 1;
            const std::uint32_t with = std::min(all(t.with), most), both = std::min(all(t.points), with);
            if (both != 0) taken(t.both, both);
            if (both != with) taken(t.alone, with - both);
        }
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
        std::vector<std::uint32_t> points, with;
        bool each;                  // as often as those, not once
        std::uint32_t both, alone;  // the ways of ops that passed them too, and did not
    };
    void come_together(std::uint32_t point, const std::vector<std::uint32_t> &with, bool each);
    std::uint32_t way(std::uint32_t from, std::uint32_t to);

    std::vector<Way> ways_;
    std::vector<Together> together_;
    FlatMap<std::uint64_t, std::uint32_t> numbers_;  // by (from, to), from 1
};

}  // namespace opline
