// SPDX-License-Identifier: MIT
// A ring has what a deque has, whatever is pushed and popped, and while it grows.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <deque>
#include <random>

#include "ring.hpp"

using namespace opline;

TEST_CASE("a ring is a queue") {
    std::mt19937_64 random(1);
    Ring<int> ring;
    std::deque<int> expected;
    for (int n = 0; n < 20000; ++n) {
        const bool growing = n / 2000 % 2 == 0;  // by turns it gets longer and shorter
        if (expected.empty() || random() % 4 < (growing ? 3 : 1)) {
            ring.push_back(n);
            expected.push_back(n);
        } else {
            CHECK(ring.front() == expected.front());
            ring.pop_front();
            expected.pop_front();
        }
        REQUIRE(ring.size() == expected.size());
        REQUIRE(ring.empty() == expected.empty());
        if (!expected.empty()) {
            const std::size_t at = random() % expected.size();
            REQUIRE(ring[at] == expected[at]);
        }
    }
}
