// SPDX-License-Identifier: MIT
// The shortest way through the stitcher: a point of one key that is one field, of an op that passes what others passed before.
#pragma once
#include "key_builder.hpp"
#include "stitcher.hpp"

namespace opline {

// A plain point, whose transition the op has already.
inline void Stitcher::passed(Op &op, BoundPoint &bp, std::int64_t ts_ns) {
    op.global_spaces |= bp.global_spaces;
    if (bp.ends && (op.state == OpState::kOpen || !op.hard)) {
        end_op(op, ts_ns, op.transitions.last_order());
        stop_waiting(op);
    }
}

// What plain() does, without what BoundPoint::bare rules out. False: nothing was done.
[[gnu::always_inline]] inline bool Stitcher::bare(const BoundClass &cls, BoundPoint &bp, const Event &ev, std::uint32_t host) {
    BoundKey &use = bp.find.front();
    const Slot &field = ev.slots[use.one_slot];
    if (!field.is_number()) return false;
    const std::int64_t tid = number_in(ev, cls.tid_slot, -1);
    const auto pid = static_cast<std::int32_t>(number_in(ev, cls.pid_slot, -1));
    const std::uint64_t *named = keys_.find(one_key(use, field, host, pid, tid));
    if (!named) return false;
    Op *op = ops_.itself(*named);
    if (!op || op->partner != 0) return false;
    const std::uint32_t comm = cls.comm_slot == kNoSlot ? 0 : name_of(cls, ev, thread(host, tid));
    if (!op->transitions.push_known(bp.kinds[0], ev.ts_ns, tid, pid, ev.cpu, comm)) return false;
    ++use.found;
    ++bp.transitions;
    followed(ev) = {field.u, rebindings_, op, op->serial, tid, pid, host, use.space, op->transitions.last_thread()};
    passed(*op, bp, ev.ts_ns);
    return true;
}

[[gnu::always_inline]] inline bool Stitcher::follow(const BoundClass &cls, const Event &ev, std::uint32_t host) {
    const Slot &field = ev.slots[cls.bare_slot];
    const Followed &f = followed(ev);
    // Each of these can differ, and mostly none does: one branch.
    const auto other_thread = static_cast<std::uint64_t>((f.tid ^ number_in(ev, cls.tid_slot, -1)) | (f.pid ^ static_cast<std::int32_t>(number_in(ev, cls.pid_slot, -1))));
    if (((f.number ^ field.u) | (f.rebindings ^ rebindings_) | (f.space ^ cls.bare_space) | (f.host ^ host) | other_thread) != 0 || !field.is_number()) return false;
    Op &op = *f.op;
    const bool live = op.state == OpState::kOpen || op.state == OpState::kEnded;
    if (((op.serial ^ f.serial) | op.partner) != 0 || !live) return false;
    const std::uint32_t comm = cls.comm_slot == kNoSlot ? 0 : name_of(cls, ev, thread(host, f.tid));
    BoundPoint &bp = *cls.bare;
    if (!op.transitions.push_by(bp.kinds[0], f.thread, ev.ts_ns, ev.cpu, comm)) return false;
    ++bp.followed;
    passed(op, bp, ev.ts_ns);
    return true;
}

[[gnu::always_inline]] inline void Stitcher::expect(const BoundClass &cls, const Event &ev, std::uint32_t host) const {
    if (cls.bare) {
        fetch(followed(ev).op, 2 * 64);
        return;
    }
    if (!cls.only || !cls.only->begins) return;
    const BoundKey &use = cls.only->bind.front();
    if (use.one_slot == kNoSlot) return;
    keys_.expect(one_key(use, ev.slots[use.one_slot], host, static_cast<std::int32_t>(number_in(ev, cls.pid_slot, -1)), number_in(ev, cls.tid_slot, -1)));
}

inline Fate Stitcher::event(BoundClass &cls, const Event &ev, std::uint32_t host) {
    BoundPoint *bp = cls.only;
    if (!bp) return any_event(cls, ev, host);
    const bool done = bp->bare    ? bare(cls, *bp, ev, host)
                      : bp->plain ? plain(cls, *bp, ev, host)
                                  : bp->begins && short_begins_ && begin(cls, *bp, ev, host);
    if (!done) return any_event(cls, ev, host);
    ++bp->seen;
    return Fate::kTransition;
}

}  // namespace opline
