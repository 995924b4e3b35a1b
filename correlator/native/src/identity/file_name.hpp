// SPDX-License-Identifier: MIT
// What is known of the file that has an inode number.
#pragma once
#include <cstdint>

namespace opline {

struct FileName {
    std::uint32_t generation = 0;  // 0: the file system has none, or it was not told
    std::uint32_t path = 0;        // pool id; 0: not known
};

}  // namespace opline
