// SPDX-License-Identifier: MIT
// The shortest ways through the stitcher: a point of one key that is one field, of an op that passes what others passed before. And what is
// done for every op that begins.
#pragma once
#include "key_builder.hpp"
#include "stitcher.hpp"

namespace opline {

inline Op &Stitcher::new_op(std::uint32_t host, std::int32_t pid, std::int64_t begin_ns) {
    if (ops_.full()) evict_oldest();
    OpFacts facts;
    facts.begin_ns = begin_ns;
    facts.target = thread_key(host, pid);
    facts.host = host;
    facts.pid = pid;
    Op &op = ops_.create(facts);
    op.hard = true;
    return op;
}

inline void Stitcher::bind_key(Op &op, std::uint64_t ref, std::uint32_t space, const Key &key) {
    std::uint64_t &named = *keys_.insert(key).first;
    if (named == ref) return;
    const std::uint64_t before = named;
    named = ref;
    op.keys.push_back(key);
    if (before != 0) taken_over(before, op, space);
}

[[gnu::always_inline]] inline void Stitcher::decorate(Op &op, const BoundPoint &bp, const Event &ev, std::int64_t tid, std::int32_t pid) {
    if (bp.class_id != 0) op.op_class = bp.class_id;
    if (bp.class_slot != kNoSlot && ev.slots[bp.class_slot].kind == Slot::Kind::kString) op.op_class = strings_.intern(ev.slots[bp.class_slot].str());
    if (bp.object_slot != kNoSlot && with_objects_) {
        const Slot &s = ev.slots[bp.object_slot];
        if (s.kind == Slot::Kind::kString) op.object.assign(s.str());
        else if (s.is_number()) op.object = std::to_string(s.u);
    }
    if (bp.offset_slot != kNoSlot && ev.slots[bp.offset_slot].is_number()) {
        op.offset_bytes = ev.slots[bp.offset_slot].i;
        op.has_offset = true;
    }
    if (bp.length_slot != kNoSlot && ev.slots[bp.length_slot].is_number() && ev.slots[bp.length_slot].i >= 0) {
        op.length_bytes = ev.slots[bp.length_slot].i;
        op.has_length = true;
    }
    if (bp.direction != Direction::kUnknown) op.direction = bp.direction;
    if (bp.of_files) decorate_with_file(op, bp, ev, tid, pid);
}

// A plain point, whose transition the op has already.
inline void Stitcher::passed(Op &op, BoundPoint &bp, std::int64_t ts_ns) {
    op.global_spaces |= bp.global_spaces;
    ends(op, bp, ts_ns);
}

inline void Stitcher::ends(Op &op, const BoundPoint &bp, std::int64_t ts_ns) {
    if (bp.ends && (op.state == OpState::kOpen || !op.hard)) {
        end_op(op, ts_ns, op.transitions.last_order());
        stop_waiting(op);
    }
}

// From now on the stream's events are about that op, as long as their numbers are the same.
inline void Stitcher::follow_from_here(const BoundClass &cls, const Event &ev, Op &op, std::uint32_t thread) {
    if (cls.numbers.means == 0) return;
    if (op.followed_as == 0) op.followed_as = ++last_followed_;
    followed_[ev.stream] = {&op, op.followed_as, thread};
}

// What plain() does, without what BoundClass::bare rules out.
[[gnu::always_inline]] inline bool Stitcher::bare(const BoundClass &cls, const Event &ev, std::uint32_t host) {
    BoundPoint &bp = *cls.bare;
    const BoundKey &use = bp.find.front();
    const Slot &field = ev.slots[use.one_slot];
    if (!field.is_number()) return false;
    const std::int64_t tid = number_in(ev, cls.tid_slot, -1);
    const auto pid = static_cast<std::int32_t>(number_in(ev, cls.pid_slot, -1));
    const std::uint64_t *named = keys_.find(one_key(use, field, host, pid, tid));
    if (!named) return false;
    Op *op = ops_.itself(*named);
    if (!op || op->paired) return false;
    const std::uint32_t thread = op->transitions.push_known(bp.kinds[0], ev.ts_ns, tid, pid);
    if (thread == Shapes::kMaxThreads) return false;
    if (op->transitions.detailed()) add_detail(cls, ev, *op);
    ++bp.bare_events;
    follow_from_here(cls, ev, *op, thread);
    passed(*op, bp, ev.ts_ns);
    return true;
}

[[gnu::always_inline]] inline bool Stitcher::follow(const BoundClass &cls, const Event &ev) {
    const Followed &f = followed_[ev.stream];
    Op &op = *f.op;
    if (op.followed_as != f.as) return false;
    BoundPoint &bp = *cls.bare;
    if (!op.transitions.push_by(bp.kinds[0], f.thread, ev.ts_ns)) return false;
    if (op.transitions.detailed()) add_detail(cls, ev, op);
    ++bp.bare_events;
    ends(op, bp, ev.ts_ns);  // the key's space is among the op's since it was first found by it
    return true;
}

[[gnu::always_inline]] inline void Stitcher::expect_key(const BoundClass &cls, const Event &ev, const std::vector<std::uint32_t> &hosts) const {
    const BoundKey &use = cls.only->bind.front();
    keys_.expect(one_key(use, ev.slots[use.one_slot], hosts[ev.stream], static_cast<std::int32_t>(number_in(ev, cls.pid_slot, -1)), number_in(ev, cls.tid_slot, -1)));
}

inline Fate Stitcher::event(BoundClass &cls, const Event &ev, std::uint32_t host) {
    BoundPoint *bp = cls.only;
    if (!bp || !(bp->plain ? plain(cls, *bp, ev, host) : bp->begins && short_begins_ && begin(cls, *bp, ev, host))) return any_event(cls, ev, host);
    ++bp->seen;
    return Fate::kTransition;
}

}  // namespace opline
