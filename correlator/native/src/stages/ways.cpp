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
    for (const auto &p : plan.points) {
        if (p.passed_with.empty()) continue;
        const std::uint32_t point = strings.intern(p.name);
        auto at = std::find_if(together_.begin(), together_.end(), [&](const Together &t) { return t.point == point; });
        if (at == together_.end()) {
            const auto both = static_cast<std::uint32_t>(ways_.size());
            ways_.resize(both + 2);
            at = together_.insert(at, {point, {}, both, both + 1});
        }
        for (const auto &name : p.passed_with) at->with.push_back(strings.intern(name));
    }
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
