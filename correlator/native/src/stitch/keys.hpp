// SPDX-License-Identifier: MIT
// What names an op: the keys of an event, what they are made of, what they are bound to.
#pragma once
#include <string>

#include "base/flat_map.hpp"
#include "stitch/key_builder.hpp"
#include "stitch/op_lives.hpp"
#include "stitch/settled_keys.hpp"

namespace opline {

enum class KeyState : std::uint8_t { kKnown, kAbsent, kUnlearned };  // a field is absent; a fact is not known

class Keys {
  public:
    Keys(Stitching &, OpLives &);

    void skip_texts() { with_key_texts_ = false; }

    KeyState key_of(const BoundKey &, const Event &, const ThreadId &, Key &) const;
    bool facts_known(const BoundPoint &, const Event &, const ThreadId &) const;
    Fate learn(const BoundPoint &, const PointSpec &, const Event &, const ThreadId &);

    // The ref of the op or alias named by the key; nullptr: the key names nothing. Valid until the next key.
    const std::uint64_t *find(const Key &key) const { return keys_.find(key); }
    bool has_settled(const Key &key) { return settled_keys_.contains(key); }
    void bind(Op &op, std::uint64_t ref, std::uint32_t space, const Key &key) {
        std::uint64_t &named = *keys_.insert(key).first;
        if (named == ref) return;
        const std::uint64_t before = named;
        named = ref;
        op.keys.push_back(key);
        if ((lent_spaces_ >> space & 1) != 0) op.lent.emplace_back(space, key);
        if (before != 0) taken_over(before, op, space);
    }
    void bind_batch(Batch &, const Key &);
    void release(const BoundPoint &, const Event &, const ThreadId &, Op *);
    void forget(const Op &);     // the op settles
    void forget_batch(Batch &);  // the batch closes
    bool owns_all_keys_lost(const Op &) const;

    void key_text(const BoundKey &use, const Event &ev, std::string &out) const {
        if (with_key_texts_) append_key_text(use, ev, out);
    }
    void name_op(Op &, const BoundKey &, const Event &) const;

  private:
    static Key fact_key(std::int32_t fact, KeyScope, const Slot &, const ThreadId &);
    void append_key_text(const BoundKey &, const Event &, std::string &out) const;
    void taken_over(std::uint64_t before, const Op &, std::uint32_t space);

    Stitching &s_;
    OpLives &lives_;
    OpTable &ops_;
    FlatMap<Key, std::uint64_t, KeyHash, FlatCellByValue<Key, std::uint64_t>> keys_;  // → op ref, or alias
    FlatMap<Key, Key, KeyHash> facts_;
    SettledKeys<Key, KeyHash> settled_keys_;
    bool with_key_texts_ = true;
    std::uint64_t end_spaces_ = 0;   // key spaces used by ends to find the op
    std::uint64_t lent_spaces_ = 0;  // key spaces with points that take back all keys lent to the op
};

inline KeyState Keys::key_of(const BoundKey &use, const Event &ev, const ThreadId &who, Key &key) const {
    KeyBuilder b = seeded_key(use, who);
    for (std::size_t i = 0; i < use.slots.size(); ++i) {
        const Slot &s = ev.slots[use.slots[i]];
        if (!s.present()) return KeyState::kAbsent;
        if (!use.facts.empty() && use.facts[i] != kNoFact) {
            const auto scope = s_.plan.facts[static_cast<std::size_t>(use.facts[i])].scope;
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
