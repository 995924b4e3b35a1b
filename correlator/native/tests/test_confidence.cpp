// SPDX-License-Identifier: MIT
// The word that a link's confidence is, for each combination of rules.
#include <doctest/doctest.h>

#include <string>

#include "link/confidence.hpp"

using namespace opline;

TEST_CASE("the thread and the place together make a link high") {
    using namespace rule;
    for (const std::uint32_t rules :
         {kThread | kSector, kThread | kExtent, kThread | kPage, kThread | kSector | kExtent,
          kThread | kSector | kParent, kThread | kPage | kBatch})
        CHECK(name_of(confidence_of(rules, false, false, false)) == "high");
}

TEST_CASE("one of the two alone, a batch or a parent makes a link medium") {
    using namespace rule;
    for (const std::uint32_t rules : {kThread, kSector, kExtent, kPage, kBatch, kThread | kParent, kSector | kExtent,
                                      kBatch | kSector, kThread | kBatch})
        CHECK(name_of(confidence_of(rules, false, false, false)) == "medium");
}

TEST_CASE("what is ambiguous or doubtful is low, whatever rules agree") {
    for (std::uint32_t rules = 0; rules < 64; ++rules) {
        CHECK(name_of(confidence_of(rules, true, false, false)) == "low");
        CHECK(name_of(confidence_of(rules, false, true, false)) == "low");
        CHECK(name_of(confidence_of(rules, true, true, false)) == "low");
        CHECK(confidence_of(rules, false, false, false) != Confidence::kLow);
    }
}

TEST_CASE("what the order of events behind a completion says makes no link high") {
    for (std::uint32_t rules = 0; rules < 64; ++rules) {
        CHECK(name_of(confidence_of(rules, false, false, true)) == "medium");
        CHECK(name_of(confidence_of(rules, true, false, true)) == "low");
        CHECK(name_of(confidence_of(rules, false, true, true)) == "low");
    }
}
