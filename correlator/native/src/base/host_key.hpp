// SPDX-License-Identifier: MIT
// A key for what has a number on a host: a thread, a CPU, a device.
#pragma once
#include <cstdint>

namespace opline {

// `host`: pool id. Of the number the last 32 bits count.
inline std::uint64_t host_key(std::uint32_t host, std::int64_t number) {
    return std::uint64_t{host} << 32 | static_cast<std::uint32_t>(number);
}

}  // namespace opline
