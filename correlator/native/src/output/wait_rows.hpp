// SPDX-License-Identifier: MIT
// Rows of the table waits.
#pragma once
#include <array>

#include "base/strings.hpp"
#include "base/table.hpp"
#include "stages/settled_op.hpp"

namespace opline {

// The words of such rows, by WaitKind and WaitDoubt: pool ids.
struct WaitWords {
    explicit WaitWords(StringPool &);
    std::array<std::uint32_t, kWaitKinds.size()> kinds;
    std::array<std::uint32_t, kWaitDoubts.size()> doubts;
    std::array<std::uint32_t, kLockKinds.size()> locks;
};

void put_waits(Table &, const WaitWords &, const SettledOp &);

}  // namespace opline
