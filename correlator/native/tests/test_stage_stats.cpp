// SPDX-License-Identifier: MIT
// Statistics are the same whether ops come stage by stage or as times of a shape.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>
#include <vector>

#include "statistics/stage_stats.hpp"

using opline::StageStatistics;

namespace {

struct Shape {
    std::vector<StageStatistics::ShapeStage> stages;
    std::vector<std::uint32_t> unknown;
    std::uint32_t handle = 0;
};

// Of `most` transitions at most, some of which no stage ends at; a stage may recur.
Shape random_shape(std::mt19937_64 &random, std::uint32_t most) {
    Shape out;
    const bool each_step = random() % 2 == 0;
    const auto first = static_cast<std::uint32_t>(random() % 5);
    const std::uint32_t last = static_cast<std::uint32_t>(random() % most);
    for (std::uint32_t to = 1; to <= last; ++to) {
        if (!each_step && to != last && random() % 3 == 0) continue;
        const bool recurs = !each_step && random() % 8 == 0;
        if (!each_step && random() % 4 == 0) out.unknown.push_back(static_cast<std::uint32_t>(out.stages.size()));
        out.stages.push_back({first + (recurs ? 0 : to), 1, to});
    }
    return out;
}

std::string text(std::uint32_t n) { return std::to_string(n); }

}  // namespace

TEST_CASE("by stages and by times") {
    std::mt19937_64 random(7);
    for (int round = 0; round < 8; ++round) {
        StageStatistics by_stages, by_times;
        std::vector<Shape> shapes;
        for (int n = 0; n < 6; ++n) {
            shapes.push_back(random_shape(random, round < 4 ? 6 : 40));
            shapes.back().handle = by_times.add_shape(shapes.back().stages, shapes.back().unknown);
        }
        for (std::uint64_t op = 0; op < 3000; ++op) {
            const Shape &shape = shapes[std::min<std::size_t>(random() % 12, 5)];  // one has many ops
            const bool counts = random() % 50 != 0;
            const std::int64_t longest = random() % 100 == 0 ? 2'000'000'000 : random() % 3 == 0 ? 3 : 100'000;
            std::vector<std::int64_t> times{static_cast<std::int64_t>(random() % 1000)};
            while (times.size() < 41) {
                times.push_back(times.back() +
                                static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(longest)));
            }
            std::int64_t from_ns = times[0], unknown_ns = 0;
            for (std::uint32_t seq = 0; seq < shape.stages.size(); ++seq) {
                const auto &s = shape.stages[seq];
                const std::int64_t duration_ns = times[s.to_at] - from_ns;
                from_ns = times[s.to_at];
                if (std::count(shape.unknown.begin(), shape.unknown.end(), seq) != 0) unknown_ns += duration_ns;
                by_stages.stage(s.name, s.kind, op, seq, duration_ns, counts);
            }
            if (counts) by_stages.op(from_ns - times[0], 0, unknown_ns);
            by_times.op_of_shape(shape.handle, op, counts, times.data());
        }
        const auto expected = by_stages.json(text);
        CHECK(by_times.json(text) == expected);
    }
}

TEST_CASE("as many as are kept, and one more") {
    const std::vector<StageStatistics::ShapeStage> stages{{1, 1, 1}, {2, 1, 2}};
    for (const std::size_t ops : {opline::Distribution::kExact, opline::Distribution::kExact + 1}) {
        StageStatistics by_stages, by_times;
        const std::uint32_t handle = by_times.add_shape(stages, {});
        std::vector<std::uint32_t> sorted;
        std::mt19937_64 random(ops);
        for (std::uint64_t op = 0; op < ops; ++op) {
            const std::uint32_t steps[] = {static_cast<std::uint32_t>(random() % (std::uint64_t{1} << random() % 31)),
                                           5};
            sorted.push_back(steps[0]);
            for (std::uint32_t seq = 0; seq < 2; ++seq) by_stages.stage(stages[seq].name, 1, op, seq, steps[seq], true);
            by_stages.op(steps[0] + 5, 0, 0);
            const std::int64_t times[] = {0, steps[0], steps[0] + std::int64_t{5}};
            by_times.op_of_shape(handle, op, true, times);
        }
        const auto result = by_times.json(text);
        CHECK(result == by_stages.json(text));
        CHECK(result["exact"] == (ops == opline::Distribution::kExact));
        CHECK(result["unattributed"]["count"] == ops);
        if (!result["exact"]) continue;
        std::sort(sorted.begin(), sorted.end());
        const std::size_t per_mille[] = {500, 900, 990, 999};
        for (std::size_t i = 0; i < 4; ++i)
            CHECK(result["stages"][0]["quantiles_ns"][i] == sorted[(ops * per_mille[i] + 999) / 1000 - 1]);
    }
}
