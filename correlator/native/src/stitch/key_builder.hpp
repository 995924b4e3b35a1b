// SPDX-License-Identifier: MIT
// Hashes what a key is made of, field by field, to Key's 128 bits.
#pragma once
#include <cstdint>
#include <string_view>

#include "base/flat_map.hpp"
#include "event/event.hpp"
#include "model/plan.hpp"
#include "op/op.hpp"
#include "op/thread_points.hpp"
#include "stitch/stitching.hpp"

namespace opline {

struct KeyBuilder {
    std::uint64_t lo, hi;
    KeyBuilder(std::uint64_t lo, std::uint64_t hi) : lo(lo), hi(hi) {}
    explicit KeyBuilder(std::uint64_t seed)
        : lo(mix64(seed + 0x9e3779b97f4a7c15ull)), hi(mix64(seed + 0xc2b2ae3d27d4eb4full)) {}
    void add(std::uint64_t v) {
        lo = folded(lo ^ v, 0x9e3779b97f4a7c15ull);
        hi = folded(hi ^ v, 0xff51afd7ed558ccdull) + lo;
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
    // Folds the 128-bit product: every bit of the result depends on every bit of a (step of wyhash, final version 4).
    static std::uint64_t folded(std::uint64_t a, std::uint64_t b) {
        const auto product = static_cast<unsigned __int128>(a) * b;
        return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
    }
    void add_scope(KeyScope scope, const ThreadId &who) {
        if (scope == KeyScope::kProcess) add((std::uint64_t{who.host} << 32) | static_cast<std::uint32_t>(who.pid));
        if (scope == KeyScope::kThread) add(thread_key(who.host, who.tid));
        if (const std::uint32_t life = life_of(scope, who)) add(std::uint64_t{life});
    }
    static std::uint32_t life_of(KeyScope scope, const ThreadId &who) {
        return scope == KeyScope::kProcess ? who.pid_life : scope == KeyScope::kThread ? who.tid_life : 0;
    }
};

constexpr std::uint64_t kOneNumber = 0;  // Key::hi of a fact with one integer: Key::lo is the integer itself

// The begin of a key: space and scope.
[[gnu::always_inline]] inline KeyBuilder seeded_key(const BoundKey &use, const ThreadId &who) {
    const std::int64_t id = use.scope == KeyScope::kProcess ? who.pid : use.scope == KeyScope::kThread ? who.tid : 0;
    const std::uint32_t life = KeyBuilder::life_of(use.scope, who);
    if (use.seed.host != who.host || use.seed.id != id || use.seed.life != life) {
        KeyBuilder seed(use.space);
        seed.add_scope(use.scope, who);
        use.seed = {who.host, id, life, seed.lo, seed.hi};
    }
    return {use.seed.lo, use.seed.hi};
}

}  // namespace opline
