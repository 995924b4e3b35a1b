// SPDX-License-Identifier: MIT
// Counts, sums, the least, the largest, the deviation and percentiles are those of the sorted values, however few or
// many there are, and in any order.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "statistics/distribution.hpp"
#include "tests/sanitized.hpp"

using opline::Distribution;

TEST_CASE("what adds to other values, and how many values are where") {
    Distribution d(Distribution::kAll);
    const std::int64_t large = std::int64_t{1} << 40;
    for (const std::int64_t value : {7, 1025, 1024, 7, 1028}) d.add(value);
    d.add(large);
    const auto cells = d.cells();
    REQUIRE(cells.size() == 4);
    CHECK(cells[0].first == 7);
    CHECK(cells[0].second.count == 2);
    CHECK(cells[1].second.total == 2049);  // from 1024 on a bucket has four values
    CHECK(cells[1].second.least == 1024);
    CHECK(cells[1].second.most == 1025);
    CHECK(cells[3].second.most == large);
    CHECK(d.squares() == 2 * 49 + 1025 * 1025 + 1024 * 1024 + 1028 * 1028 + (static_cast<unsigned __int128>(1) << 80));
    using Steps = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
    CHECK(d.within(7, 1025, 1017) == Steps{{0, 2}, {1, 1}});
    CHECK(d.within(1029, large, 1).empty());
    CHECK(d.within(1029, large + 1, large) == Steps{{0, 1}});
}

namespace {

const std::vector<std::uint32_t> kPerMille{1, 500, 900, 990, 999, 1000};

Distribution::Summary summary_of(const std::vector<std::int64_t> &values) {
    Distribution d;
    for (const auto value : values) d.add(value);
    auto out = d.summary(kPerMille);
    CHECK(d.summary(kPerMille).percentiles == out.percentiles);
    return out;
}

void check(std::vector<std::int64_t> values, std::mt19937_64 &random) {
    const auto found = summary_of(values);
    std::shuffle(values.begin(), values.end(), random);
    CHECK(summary_of(values).percentiles == found.percentiles);
    REQUIRE(found.count == values.size());
    CHECK(found.total == std::accumulate(values.begin(), values.end(), std::int64_t{0}));
    CHECK(found.exact == (values.size() <= Distribution::kExact));
    std::sort(values.begin(), values.end());
    CHECK(found.max == values.back());
    CHECK(found.min == values.front());
    const long double mean = static_cast<long double>(found.total) / static_cast<long double>(values.size());
    long double squares = 0;
    for (const auto value : values) squares += (static_cast<long double>(value) - mean) * (value - mean);
    const long double deviation = std::sqrt(squares / static_cast<long double>(values.size()));
    CHECK(std::abs(found.deviation - deviation) <= 1e-6L * (deviation + std::abs(mean)));
    for (std::size_t i = 0; i < kPerMille.size(); ++i) {
        const std::int64_t there = values[(values.size() * kPerMille[i] + 999) / 1000 - 1];
        if (found.exact) CHECK(found.percentiles[i] == there);
        else
            CHECK(std::abs(found.percentiles[i] - std::max<std::int64_t>(there, 0)) * 512 <=
                  std::max<std::int64_t>(there, 0));
    }
}

}  // namespace

TEST_CASE("nothing") {
    const auto found = summary_of({});
    CHECK(found.count == 0);
    CHECK(found.max == 0);
    CHECK(found.min == 0);
    CHECK(found.deviation == 0);
    CHECK(found.percentiles == std::vector<std::int64_t>(kPerMille.size()));
}

TEST_CASE("any numbers of any size") {
    std::mt19937_64 random(5);
    auto below = [&](std::uint64_t n) { return static_cast<std::int64_t>(random() % n); };
    const std::vector<std::size_t> counts{
        1, 2, 63, 64, 65, 2047, 2048, 2049, 5000, 70'000, Distribution::kExact, Distribution::kExact + 1, 600'000};
    for (const std::size_t count : counts)
        for (const int what : {0, 1, 2, 3, 4, 5}) {
            if (opline::kSanitized && count > 70'000 && what % 3 != 0) continue;
            std::vector<std::int64_t> values(count);
            const std::size_t zeros = what == 4 ? count / 3 : 0;
            for (std::size_t i = zeros; i < count; ++i)
                values[i] = what == 0        ? below(2048)
                            : what == 1      ? 2040 + below(16)
                            : what == 2      ? 5000 + below(1'000'000)
                            : what == 3      ? below(std::uint64_t{1} << below(31))
                            : what == 4      ? below(std::uint64_t{1} << below(40))
                            : below(50) == 0 ? -below(1000)
                                             : below(100'000);
            CAPTURE(count);
            CAPTURE(what);
            check(values, random);
        }
}
