// SPDX-License-Identifier: MIT
#include "stages/ways.hpp"

#include <algorithm>

namespace opline {
namespace {

constexpr std::uint64_t kNearlyAll = 8;  // times as many ops as go another way

std::uint64_t pair_of(std::uint32_t from, std::uint32_t to) { return std::uint64_t{from} << 32 | to; }

}  // namespace

Ways::Ways(const Plan &plan, StringPool &strings) {
    FlatMap<std::uint64_t, bool> stages;
    for (const auto &s : plan.stages) stages.put(pair_of(strings.intern(s.from), strings.intern(s.to)), true);
    for (const auto &first : plan.stages)
        for (const auto &second : plan.stages) {
            if (first.to != second.from || first.from == first.to || second.from == second.to) continue;
            const std::uint32_t from = strings.intern(first.from), over = strings.intern(first.to),
                                to = strings.intern(second.to);
            if (stages.contains(pair_of(from, to))) continue;
            const std::uint32_t direct = way(from, to), there = way(from, over), on = way(over, to);
            ways_[direct].rounds.push_back({over, there, on});
        }
    auto ids = [&strings](const std::vector<std::string> &names) {
        std::vector<std::uint32_t> out;
        for (const auto &name : names) out.push_back(strings.intern(name));
        return out;
    };
    for (const auto &p : plan.points) {
        const std::uint32_t point = strings.intern(p.name);
        if (!p.passed_with.empty()) come_together(point, ids(p.passed_with), false);
        if (!p.each_with.empty()) come_together(point, ids(p.each_with), true);
    }
}

// A point's rules add up: it comes with whatever one of them names. Points that come as often as the same others do
// share these.
void Ways::come_together(std::uint32_t point, const std::vector<std::uint32_t> &with, bool each) {
    auto at = std::find_if(together_.begin(), together_.end(), [&](const Together &t) {
        return t.each == each && (each ? t.with == with : t.points.front() == point);
    });
    if (at == together_.end()) {
        const auto both = static_cast<std::uint32_t>(ways_.size());
        ways_.resize(both + 2);
        at = together_.insert(at, {{}, {}, each, both, both + 1});
    }
    auto add = [](std::vector<std::uint32_t> &points, std::uint32_t one) {
        if (std::find(points.begin(), points.end(), one) == points.end()) points.push_back(one);
    };
    add(at->points, point);
    for (std::uint32_t other : with) add(at->with, other);
}

std::uint32_t Ways::way(std::uint32_t from, std::uint32_t to) {
    auto [number, added] = numbers_.insert(pair_of(from, to));
    if (added) {
        ways_.emplace_back();
        *number = static_cast<std::uint32_t>(ways_.size());
    }
    return *number - 1;
}

std::uint32_t Ways::find(std::uint32_t from, std::uint32_t to) const {
    const std::uint32_t *number = numbers_.find(pair_of(from, to));
    return number ? *number - 1 : kNone;
}

bool Ways::leads_round(std::uint32_t way, std::uint32_t point) const {
    const auto &rounds = ways_[way].rounds;
    return std::any_of(rounds.begin(), rounds.end(), [&](const Round &r) { return r.over == point; });
}

std::uint64_t Ways::points_missing() const {
    std::uint64_t missing = 0;
    for (const auto &way : ways_) {
        std::uint64_t round = 0;
        for (const auto &r : way.rounds) round = std::max(round, std::min(ways_[r.first].ops, ways_[r.second].ops));
        if (way.ops * kNearlyAll <= round) missing += way.ops;
    }
    for (const auto &t : together_)
        if (ways_[t.alone].ops * kNearlyAll <= ways_[t.both].ops) missing += ways_[t.alone].ops;
    return missing;
}

}  // namespace opline
