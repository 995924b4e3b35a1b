// SPDX-License-Identifier: MIT
// How sure a link between an op and a bio is.
#pragma once
#include <cstdint>
#include <string_view>

#include "block/block.hpp"

namespace opline {

// Rules in favour of a link, as bits.
namespace rule {
constexpr std::uint32_t kThread = 1, kSector = 2, kExtent = 4, kPage = 8, kBatch = 16, kParent = 32;
}

enum class Confidence : std::uint8_t { kLow, kMedium, kHigh };

// | the rules that agree                                   | the link is | confidence |
// |--------------------------------------------------------|-------------|------------|
// | any                                                    | ambiguous   | low        |
// | any                                                    | doubtful    | low        |
// | the thread, and the place: sector, extent or page      | neither     | high       |
// | one of the two alone, a batch, or the bio's parent bio | neither     | medium     |
// | any                                                    | by order    | medium     |
// | the thread, and the place                              | by two      | high       |
//
// ambiguous: another op, bio or request fits as well. doubtful: events are missing where the link was made. by order:
// several requests fitted the completion, and the order of what went on behind it says whose it is. by two: a wake-up
// says so, and the times alone say so, too (CompletionBy).
constexpr Confidence confidence_of(std::uint32_t rules, bool ambiguous, bool doubtful, CompletionBy by) {
    if (ambiguous || doubtful) return Confidence::kLow;
    const bool thread = (rules & rule::kThread) != 0;
    const bool place = (rules & (rule::kSector | rule::kExtent | rule::kPage)) != 0;
    return thread && place && by != CompletionBy::kOrder ? Confidence::kHigh : Confidence::kMedium;
}

constexpr std::string_view name_of(Confidence confidence) {
    return confidence == Confidence::kHigh ? "high" : confidence == Confidence::kMedium ? "medium" : "low";
}

}  // namespace opline
