// SPDX-License-Identifier: MIT
// Hashes what a key is made of, field by field, to Key's 128 bits.
#pragma once
#include <cstdint>
#include <string_view>

#include "event.hpp"
#include "flat_map.hpp"
#include "op.hpp"
#include "plan.hpp"
#include "stitcher.hpp"

namespace opline {

struct KeyBuilder {
    std::uint64_t lo, hi;
    KeyBuilder(std::uint64_t lo, std::uint64_t hi) : lo(lo), hi(hi) {}
    explicit KeyBuilder(std::uint64_t seed) : lo(mix64(seed + 0x9e3779b97f4a7c15ull)), hi(mix64(seed + 0xc2b2ae3d27d4eb4full)) {}
    void add(std::uint64_t v) {
        lo = mix64(lo ^ v) + 0x9e3779b97f4a7c15ull;
        hi = mix64(hi + v * 0xff51afd7ed558ccdull) ^ lo;
    }
    void add(std::string_view s) {
        std::uint64_t word = 0;
        std::size_t i = 0;
        for (; i + 8 <= s.size(); i += 8) {
            __builtin_memcpy(&word, s.data() + i, 8);
            add(word);
        }
        word = 0;
        if (i < s.size()) __builtin_memcpy(&word, s.data() + i, s.size() - i);
        add(word);
        add(static_cast<std::uint64_t>(s.size()) | 1ull << 63);
    }
    void add(const Slot &s) {
        if (s.kind == Slot::Kind::kString) add(s.str());
        else add(s.bits());
    }
    void add_scope(KeyScope scope, std::uint32_t host, std::int32_t pid, std::int64_t tid) {
        if (scope == KeyScope::kProcess) add((static_cast<std::uint64_t>(host) << 32) | static_cast<std::uint32_t>(pid));
        if (scope == KeyScope::kThread) add(thread_key(host, tid));
    }
};

}  // namespace opline
