// SPDX-License-Identifier: MIT
// LostIntervals against a search through all intervals.
#include <doctest/doctest.h>

#include <random>
#include <utility>
#include <vector>

#include "base/lost_intervals.hpp"

namespace opline {
namespace {

TEST_CASE("an interval overlaps if any of them does, in whatever order they were added") {
    std::mt19937 chance(7);
    const auto below = [&](unsigned n) { return static_cast<std::int64_t>(chance() % n); };
    for (int round = 0; round < 200; ++round) {
        LostIntervals lost;
        std::vector<std::pair<std::int64_t, std::int64_t>> all;
        CHECK(lost.empty());
        for (int i = 0; i < 12; ++i) {
            const std::int64_t begin_ns = below(50), end_ns = begin_ns + below(10);
            lost.add(begin_ns, end_ns);
            all.emplace_back(begin_ns, end_ns);
            for (int k = 0; k < 10; ++k) {
                const std::int64_t from_ns = below(60), until_ns = from_ns + below(8);
                bool any = false;
                for (const auto &[begin, end] : all) any = any || (begin <= until_ns && end >= from_ns);
                REQUIRE(lost.overlap(from_ns, until_ns) == any);
            }
        }
    }
}

}  // namespace
}  // namespace opline
