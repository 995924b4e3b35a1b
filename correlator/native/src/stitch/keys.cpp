// SPDX-License-Identifier: MIT
// What names an op: the keys of an event, what they are made of, what they are bound to.
#include <algorithm>
#include <charconv>

#include "stitch/steps.hpp"

namespace opline {
namespace {

constexpr std::size_t kFactsKept = 1u << 18;

}  // namespace

Key Stitcher::fact_key(std::int32_t fact, KeyScope scope, const Slot &value, const ThreadId &who) {
    KeyBuilder b(static_cast<std::uint64_t>(fact));
    b.add_scope(scope, who);
    b.add(value);
    return {b.lo, b.hi};
}

void Stitcher::append_key_text(const BoundKey &use, const Event &ev, std::string &out) const {
    out += plan_.key_spaces[use.space].name;
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

// Adds the key to those that the op is shown with, one per space.
void Stitcher::name_op(Op &op, const BoundKey &use, const Event &ev) const {
    if (!with_key_texts_ || op.key_text.find(plan_.key_spaces[use.space].name + "=") != std::string::npos) return;
    if (!op.key_text.empty()) op.key_text += ' ';
    key_text(use, ev, op.key_text);
}

// A key of that space names `op` now, a new generation of what it named. Where its end would find that one by it, its
// last soft end must do.
void Stitcher::taken_over(std::uint64_t named, const Op &op, std::uint32_t space) {
    Op *before = ops_.find(named);
    if (!before) return;
    if (before != &op && before->state == OpState::kOpen && before->has_soft_end &&
        (!before->hard || (end_spaces_ >> space & 1) != 0))
        end_op(*before, before->soft_end_ns, before->soft_end_order);
}

void Stitcher::bind_batch(Batch &batch, const Key &key) {
    if (batch.alias == 0) {
        Op &alias = ops_.create_alias();
        alias.alias_batch = &batch;
        batch.alias = op_ref(alias);
    }
    keys_.put(key, batch.alias);
    batch.keys.push_back(key);
}

bool Stitcher::owns_all_keys_lost(const Op &op) const {
    for (const auto &k : op.keys) {
        auto named = keys_.find(k);
        if (named && ops_.find(*named) == &op) return false;
    }
    return !op.keys.empty();
}

// Whether something finds an op or a batch for the point: its first key, or its thread where it has none.
bool Stitcher::finds(const BoundPoint &bp, const Event &ev, const ThreadId &who) {
    Key key;
    if (!bp.find.empty()) {
        if (key_of(bp.find.front(), ev, who, key) != KeyState::kKnown) return false;
        const std::uint64_t *ref = keys_.find(key);
        const auto target = ref ? ops_.resolve(*ref) : OpTable::Resolved{};
        return target.op || target.batch;
    }
    for (const auto &use : bp.sole)
        if (key_of(use, ev, who, key) == KeyState::kKnown && waits_alone(key)) return true;
    if (!bp.sole.empty()) return false;
    const BatchDo does = plan_.points[bp.spec].batch_do;
    if (does != BatchDo::kWork && does != BatchDo::kOpenOrWork && does != BatchDo::kClose)
        return current_op(who.host, who.tid) != nullptr;
    // Work of a batch, and its end, are found on a thread that has one open; where nothing opens it, also on one that
    // has worked for one before.
    const ThreadState *ts = threads_.find(thread_key(who.host, who.tid));
    if (ts && ts->batch) return ts->batch->space == bp.batch_space;
    return ts && does != BatchDo::kWork && !ts->done.empty();
}

bool Stitcher::facts_known(const BoundPoint &bp, const Event &ev, const ThreadId &who) const {
    Key key;
    for (const auto &use : bp.find)
        if (key_of(use, ev, who, key) == KeyState::kUnlearned) return false;
    return true;
}

// Events that are about no op: they tell something about their thread, or about a value.
Fate Stitcher::note(const BoundPoint &bp, const Event &ev, ThreadState &ts, const ThreadId &who) {
    const PointSpec &spec = plan_.points[bp.spec];
    if (bp.mark != 0) {
        if (bp.mark == awake_) ts.marks.clear();  // what it did before it waited is done
        if (auto *marked_ns = ts.marked_ns(bp.mark)) *marked_ns = ev.ts_ns;
        else ts.marks.emplace_back(bp.mark, ev.ts_ns);
        if (plan_.behind && bp.mark == awake_ && !spec.aside)
            keep_thread_point(who.host, who.tid, {ev.ts_ns, ThreadPoint::kNobody, bp.name_id});
    }
    if (spec.learn != kNoFact) {
        const Slot &of = ev.slots[bp.fact_of.slots.front()];
        if (!of.present()) return Fate::kOrphanMalformed;
        const Slot &first = ev.slots[bp.fact_value.slots.front()];
        const Key name = fact_key(spec.learn, bp.fact_of.scope, of, who);
        if (facts_.size() >= kFactsKept) {
            counts_.evicted_facts += facts_.size();
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
        if (plan_.facts[static_cast<std::size_t>(spec.learn)].unordered) std::sort(parts.begin(), parts.end());
        KeyBuilder value(0);
        for (auto part : parts) value.add(part);
        facts_.put(name, {value.lo, value.hi | 1});
    }
    return Fate::kContext;
}

// op: that the event is about; nullptr: a batch.
void Stitcher::release_keys(const BoundPoint &bp, const Event &ev, const ThreadId &who, Op *op) {
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

}  // namespace opline
