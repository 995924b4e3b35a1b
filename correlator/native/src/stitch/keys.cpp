// SPDX-License-Identifier: MIT
#include "stitch/keys.hpp"

#include <algorithm>
#include <charconv>

namespace opline {
namespace {

constexpr std::size_t kFactsKept = 1u << 18;

}  // namespace

Keys::Keys(Stitching &s, OpLives &lives) : s_(s), lives_(lives), ops_(lives.ops()) {
    for (const auto &p : s_.plan.points) {
        for (const auto &use : p.release)
            if (use.of_op()) lent_spaces_ |= std::uint64_t{1} << use.space;
        if (p.role != Role::kEnd) continue;
        for (const auto &use : p.find) end_spaces_ |= std::uint64_t{1} << use.space;
    }
}

Key Keys::fact_key(std::int32_t fact, KeyScope scope, const Slot &value, const ThreadId &who) {
    KeyBuilder b(static_cast<std::uint64_t>(fact));
    b.add_scope(scope, who);
    b.add(value);
    return {b.lo, b.hi};
}

void Keys::append_key_text(const BoundKey &use, const Event &ev, std::string &out) const {
    out += s_.plan.key_spaces[use.space].name;
    char separator = '=';
    auto number = [&out](auto v, int base) {
        char buffer[24];
        out.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, v, base).ptr);
    };
    for (auto slot : use.slots) {
        out += separator;
        separator = ',';
        const Slot &s = ev.slots[slot];
        if (s.kind == Slot::Kind::kString) {
            out += s.str();
        } else if (s.kind == Slot::Kind::kSigned) {
            number(s.i, 10);
        } else if (s.u >= 0x100000000ull) {
            out += "0x";
            number(s.u, 16);
        } else {
            number(s.u, 10);
        }
    }
}

// Adds the key to the key text of the op, one key per space.
void Keys::name_op(Op &op, const BoundKey &use, const Event &ev) const {
    if (!with_key_texts_ || op.key_text.find(s_.plan.key_spaces[use.space].name + "=") != std::string::npos) return;
    if (!op.key_text.empty()) op.key_text += ' ';
    key_text(use, ev, op.key_text);
}

// A key of the space names `op` from now on; before, the key named another op. If the end of the other op needs the
// key, the other op ends at its last soft end.
void Keys::taken_over(std::uint64_t named, const Op &op, std::uint32_t space) {
    Op *before = ops_.find(named);
    if (!before) return;
    if (before != &op && before->state == OpState::kOpen && before->has_soft_end &&
        (!before->hard || (end_spaces_ >> space & 1) != 0))
        lives_.end_op(*before, before->soft_end_ns, before->soft_end_order);
}

void Keys::bind_batch(Batch &batch, const Key &key) {
    if (batch.alias == 0) {
        Op &alias = ops_.create_alias();
        alias.alias_batch = &batch;
        batch.alias = op_ref(alias);
    }
    keys_.put(key, batch.alias);
    batch.keys.push_back(key);
}

bool Keys::owns_all_keys_lost(const Op &op) const {
    for (const auto &k : op.keys) {
        auto named = keys_.find(k);
        if (named && ops_.find(*named) == &op) return false;
    }
    return !op.keys.empty();
}

bool Keys::facts_known(const BoundPoint &bp, const Event &ev, const ThreadId &who) const {
    Key key;
    for (const auto &use : bp.find)
        if (key_of(use, ev, who, key) == KeyState::kUnlearned) return false;
    return true;
}

// op: the event's op; nullptr: a batch.
void Keys::release(const BoundPoint &bp, const Event &ev, const ThreadId &who, Op *op) {
    Key key;
    if (bp.release_all != 0 && op) {
        const auto over = [&](const std::pair<std::uint32_t, Key> &lent) {
            if ((bp.release_all >> lent.first & 1) == 0) return false;
            if (const auto *named = keys_.find(lent.second); named && ops_.find(*named) == op) keys_.erase(lent.second);
            return true;
        };
        op->lent.erase(std::remove_if(op->lent.begin(), op->lent.end(), over), op->lent.end());
    }
    for (const auto &use : bp.release)
        if (key_of(use, ev, who, key) == KeyState::kKnown) keys_.erase(key);
}

// The event says the value of a fact.
Fate Keys::learn(const BoundPoint &bp, const PointSpec &spec, const Event &ev, const ThreadId &who) {
    const Slot &of = ev.slots[bp.fact_of.slots.front()];
    if (!of.present()) return Fate::kOrphanMalformed;
    const Slot &first = ev.slots[bp.fact_value.slots.front()];
    const Key name = fact_key(spec.learn, bp.fact_of.scope, of, who);
    if (facts_.size() >= kFactsKept) {
        s_.counts.evicted_facts += facts_.size();
        facts_.clear();
    }
    if (bp.fact_value.slots.size() == 1 && first.is_number()) {
        facts_.put(name, {first.bits(), kOneNumber});
        return Fate::kContext;
    }
    std::vector<std::uint64_t> parts;
    for (auto slot : bp.fact_value.slots) {
        KeyBuilder one(0);
        one.add(ev.slots[slot]);
        parts.push_back(one.lo);
    }
    if (s_.plan.facts[static_cast<std::size_t>(spec.learn)].unordered) std::sort(parts.begin(), parts.end());
    KeyBuilder value(0);
    for (auto part : parts) value.add(part);
    facts_.put(name, {value.lo, value.hi | 1});
    return Fate::kContext;
}

// Removes the keys of a settling op, as far as the keys still name the op.
void Keys::forget(const Op &op) {
    for (const Key &key : op.keys) {
        std::uint64_t *named = keys_.find(key);
        if (!named || ops_.find(*named) != &op) continue;
        keys_.erase_found(named);
        settled_keys_.add(key);
    }
}

void Keys::forget_batch(Batch &batch) {
    for (const auto &key : batch.keys)
        if (const auto *named = keys_.find(key); named && *named == batch.alias) keys_.erase(key);
    ops_.release(batch.alias);
    batch.alias = 0;
}

}  // namespace opline
