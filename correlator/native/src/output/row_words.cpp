// SPDX-License-Identifier: MIT
#include "output/row_words.hpp"

#include <string>
#include <utility>

#include "link/confidence.hpp"

namespace opline {

std::uint32_t RowWords::rwbs(std::uint32_t r) {
    if (r >= 4096) return strings_.intern(BlockModel::rwbs_letters(r));
    if (masks_.empty()) masks_.resize(4096);
    if (masks_[r] == 0) masks_[r] = strings_.intern(BlockModel::rwbs_letters(r)) + 1;
    return masks_[r] - 1;
}

std::uint32_t RowWords::rules(std::uint32_t rules) {
    constexpr std::pair<std::uint32_t, const char *> names[] = {{rule::kThread, "thread"}, {rule::kSector, "sector"},
                                                                {rule::kExtent, "extent"}, {rule::kPage, "page"},
                                                                {rule::kBatch, "batch"},   {rule::kParent, "parent"}};
    if (rule_sets_.empty()) rule_sets_.resize(64);
    if (rule_sets_[rules] == 0) {
        std::string text;
        for (const auto &[bit, name] : names)
            if (rules & bit) text += (text.empty() ? "" : "+") + std::string(name);
        rule_sets_[rules] = strings_.intern(text);
    }
    return rule_sets_[rules];
}

std::uint32_t RowWords::confidence(std::uint32_t rules, bool ambiguous, bool doubtful, CompletionBy by) {
    const Confidence confidence = confidence_of(rules, ambiguous, doubtful, by);
    return word(confidences_[static_cast<std::size_t>(confidence)], name_of(confidence));
}

}  // namespace opline
