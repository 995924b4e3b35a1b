// SPDX-License-Identifier: MIT
// What is done for every event that is about an op, in line.
#pragma once
#include "stitch/key_builder.hpp"
#include "stitch/stitcher.hpp"

namespace opline {

inline Op &Stitcher::new_op(std::uint32_t host, std::int32_t pid, std::int64_t begin_ns) {
    if (ops_.full()) evict_oldest();
    Op &op = ops_.create();
    op.begin_ns = begin_ns;
    op.target = thread_key(host, pid);
    op.host = host;
    op.pid = pid;
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
        op.has_offset = op.offset_bytes >= 0;  // below: its file has no places (a pipe, a socket)
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

inline Fate Stitcher::event(BoundClass &cls, const Event &ev, std::uint32_t host) {
    BoundPoint *bp = cls.only;
    if (!bp || !(bp->plain ? plain(cls, *bp, ev, host) : bp->begins && short_begins_ && begin(cls, *bp, ev, host))) return any_event(cls, ev, host);
    ++bp->seen;
    return Fate::kTransition;
}

}  // namespace opline
