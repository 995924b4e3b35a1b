// SPDX-License-Identifier: MIT
// The newest keys of settled ops, against a list of all that were added.
#include <doctest/doctest.h>

#include <random>
#include <unordered_map>

#include "stitch/settled_keys.hpp"

struct Mix {
    std::uint64_t operator()(std::uint64_t k) const { return opline::mix64(k); }
};
using Keys = opline::SettledKeys<std::uint64_t, Mix>;

TEST_CASE("the newest keys are there, the others are not") {
    std::mt19937_64 random(7);
    Keys keys;
    CHECK_FALSE(keys.contains(0));
    std::unordered_map<std::uint64_t, std::uint64_t> last;  // key → its last ordinal
    std::uint64_t added = 0;
    for (std::uint64_t step = 0; step < 600'000; ++step) {
        // long stretches without a question, and some with many
        const bool ask = random() % (step / 50'000 % 3 == 1 ? 2 : 20'000) == 0;
        const std::uint64_t key = random() % 150'000;
        if (!ask) {
            keys.add(key);
            last[key] = added++;
            continue;
        }
        auto it = last.find(key);
        REQUIRE(keys.contains(key) == (it != last.end() && it->second + Keys::kKept >= added));
    }
}
