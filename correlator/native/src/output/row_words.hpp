// SPDX-License-Identifier: MIT
// Words that rows of tables have from few values.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/strings.hpp"
#include "block/block.hpp"

namespace opline {

// Words of rows, each looked up in the pool once.
class RowWords {
  public:
    explicit RowWords(StringPool &strings) : strings_(strings) {}

    std::uint32_t rwbs(std::uint32_t mask);
    std::uint32_t kind(IoKind k) { return word(kinds_[static_cast<std::size_t>(k)], io_kind_name(k)); }
    std::uint32_t rules(std::uint32_t set);
    std::uint32_t confidence(std::uint32_t rules, bool ambiguous, bool doubtful, CompletionBy by);
    // absorbed, reused, completed, open
    std::uint32_t outcome(std::size_t n, std::string_view text) { return word(outcomes_[n], text); }
    std::uint32_t message(bool send) { return word(messages_[send ? 0 : 1], send ? "send" : "receive"); }
    std::uint32_t match(bool by_pointer) { return word(matches_[by_pointer], by_pointer ? "pointer" : "sector"); }

  private:
    // The word's pool id, being kept + 1 in `known`.
    std::uint32_t word(std::uint32_t &known, std::string_view text) {
        if (known == 0) known = strings_.intern(text) + 1;
        return known - 1;
    }

    StringPool &strings_;
    std::vector<std::uint32_t> rule_sets_;  // per set of rules, pool id
    std::vector<std::uint32_t> masks_;      // of rwbs, pool id + 1
    std::array<std::uint32_t, kIoKinds> kinds_{};
    std::array<std::uint32_t, 4> outcomes_{};
    std::array<std::uint32_t, 2> messages_{}, matches_{};
    std::array<std::uint32_t, 3> confidences_{};  // by Confidence
};

}  // namespace opline
