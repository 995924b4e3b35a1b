// SPDX-License-Identifier: MIT
// Statistics per stage: exact as long as all values are kept.
#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>
#include <vector>

#include "statistics/stage_stats.hpp"

using opline::StageStatistics;

namespace {

std::string text(std::uint32_t n) { return std::to_string(n); }

}  // namespace

TEST_CASE("as many as are kept, and one more") {
    for (const std::size_t ops : {opline::Distribution::kExact, opline::Distribution::kExact + 1}) {
        StageStatistics statistics;
        std::vector<std::uint32_t> sorted;
        std::mt19937_64 random(ops);
        for (std::uint64_t op = 0; op < ops; ++op) {
            const std::uint32_t steps[] = {static_cast<std::uint32_t>(random() % (std::uint64_t{1} << random() % 31)),
                                           5};
            sorted.push_back(steps[0]);
            for (std::uint32_t seq = 0; seq < 2; ++seq) statistics.stage(1 + seq, 1, op, seq, steps[seq], true);
            statistics.op(steps[0] + 5, 0, 0);
        }
        const auto result = statistics.json(text);
        CHECK(result["stages"][1]["total_ns"] == 5 * ops);
        CHECK(result["latency"]["count"] == ops);
        CHECK(result["exact"] == (ops == opline::Distribution::kExact));
        CHECK(result["unattributed"]["count"] == ops);
        if (!result["exact"]) continue;
        std::sort(sorted.begin(), sorted.end());
        const std::size_t per_mille[] = {500, 900, 990, 999};
        for (std::size_t i = 0; i < 4; ++i)
            CHECK(result["stages"][0]["quantiles_ns"][i] == sorted[(ops * per_mille[i] + 999) / 1000 - 1]);
    }
}
