// SPDX-License-Identifier: MIT
// Hashes what a key is made of, field by field, to Key's 128 bits.
#pragma once
#include <cstdint>
#include <string_view>

#include "base/flat_map.hpp"
#include "event/event.hpp"
#include "model/plan.hpp"
#include "op/op.hpp"
#include "stitch/stitcher.hpp"

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
    // Both halves of the product in one: every bit of the result depends on every bit of a (wyhash's step, final
    // version 4).
    static std::uint64_t folded(std::uint64_t a, std::uint64_t b) {
        const auto product = static_cast<unsigned __int128>(a) * b;
        return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
    }
    void add_scope(KeyScope scope, const ThreadId &who) {
        if (scope == KeyScope::kProcess) add((std::uint64_t{who.host} << 32) | static_cast<std::uint32_t>(who.pid));
        if (scope == KeyScope::kThread) add(thread_key(who.host, who.tid));
    }
};

constexpr std::uint64_t kOneNumber = 0;  // Key::hi of a fact that is one integer: it stands for itself

// What a key begins with: its space, and its scope.
[[gnu::always_inline]] inline KeyBuilder seeded_key(const BoundKey &use, const ThreadId &who) {
    const std::int64_t id = use.scope == KeyScope::kProcess ? who.pid : use.scope == KeyScope::kThread ? who.tid : 0;
    if (use.seed.host != who.host || use.seed.id != id) {
        KeyBuilder seed(use.space);
        seed.add_scope(use.scope, who);
        use.seed = {who.host, id, seed.lo, seed.hi};
    }
    return {use.seed.lo, use.seed.hi};
}

inline Stitcher::KeyState Stitcher::key_of(const BoundKey &use, const Event &ev, const ThreadId &who, Key &key) const {
    KeyBuilder b = seeded_key(use, who);
    for (std::size_t i = 0; i < use.slots.size(); ++i) {
        const Slot &s = ev.slots[use.slots[i]];
        if (!s.present()) return KeyState::kAbsent;
        if (!use.facts.empty() && use.facts[i] != kNoFact) {
            const auto scope = plan_.facts[static_cast<std::size_t>(use.facts[i])].scope;
            const Key *value = facts_.find(fact_key(use.facts[i], scope, s, who));
            if (!value) return KeyState::kUnlearned;
            b.add(value->lo);
            if (value->hi != kOneNumber) b.add(value->hi);
        } else {
            b.add(s);
        }
    }
    key = {b.lo, b.hi};
    return KeyState::kKnown;
}

}  // namespace opline
