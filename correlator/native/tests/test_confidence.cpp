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
        CHECK(name_of(confidence_of(rules, false, false, CompletionBy::kMatch)) == "high");
}

TEST_CASE("one of the two alone, a batch or a parent makes a link medium") {
    using namespace rule;
    for (const std::uint32_t rules : {kThread, kSector, kExtent, kPage, kBatch, kThread | kParent, kSector | kExtent,
                                      kBatch | kSector, kThread | kBatch})
        CHECK(name_of(confidence_of(rules, false, false, CompletionBy::kMatch)) == "medium");
}

TEST_CASE("what is ambiguous or doubtful is low, whatever rules agree") {
    for (std::uint32_t rules = 0; rules < 64; ++rules) {
        CHECK(name_of(confidence_of(rules, true, false, CompletionBy::kMatch)) == "low");
        CHECK(name_of(confidence_of(rules, false, true, CompletionBy::kMatch)) == "low");
        CHECK(name_of(confidence_of(rules, true, true, CompletionBy::kMatch)) == "low");
        CHECK(confidence_of(rules, false, false, CompletionBy::kMatch) != Confidence::kLow);
    }
}

TEST_CASE("what the order of events behind a completion says makes no link high") {
    for (std::uint32_t rules = 0; rules < 64; ++rules) {
        CHECK(name_of(confidence_of(rules, false, false, CompletionBy::kOrder)) == "medium");
        CHECK(name_of(confidence_of(rules, true, false, CompletionBy::kOrder)) == "low");
        CHECK(name_of(confidence_of(rules, false, true, CompletionBy::kOrder)) == "low");
    }
}

TEST_CASE("a completion of which the wake-up and the times say the same is as good as one that fits nothing else") {
    for (std::uint32_t rules = 0; rules < 64; ++rules)
        for (const bool ambiguous : {false, true})
            for (const bool doubtful : {false, true})
                CHECK(confidence_of(rules, ambiguous, doubtful, CompletionBy::kTwo) ==
                      confidence_of(rules, ambiguous, doubtful, CompletionBy::kMatch));
}
