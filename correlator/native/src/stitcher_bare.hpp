// SPDX-License-Identifier: MIT
// The shortest way through the stitcher: a point of one key that is one field, of an op that passes what others passed before.
#pragma once
#include "key_builder.hpp"
#include "stitcher.hpp"

namespace opline {

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
    if (cls.numbers.means != 0) followed_[ev.stream] = {rebindings_, &op, op.serial, thread};
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
    if (!op->transitions.push_known(bp.kinds[0], ev.ts_ns, tid, pid, ev.cpu, names_.of(ev, cls.comm_slot))) return false;
    ++use.found;
    ++bp.transitions;
    follow_from_here(cls, ev, *op, op->transitions.last_thread());
    passed(*op, bp, ev.ts_ns);
    return true;
}

[[gnu::always_inline]] inline bool Stitcher::follow(const BoundClass &cls, const Event &ev) {
    const Followed &f = followed_[ev.stream];
    if (f.rebindings != rebindings_) return false;
    Op &op = *f.op;
    if (op.serial != f.serial) return false;  // as that of an op that was settled or put away
    BoundPoint &bp = *cls.bare;
    if (!op.transitions.push_by(bp.kinds[0], f.thread, ev.ts_ns, ev.cpu, names_.of(ev, cls.comm_slot))) return false;
    ++bp.followed;
    ends(op, bp, ev.ts_ns);  // the key's space is among the op's since it was first found by it
    return true;
}

[[gnu::always_inline]] inline void Stitcher::expect_key(const BoundClass &cls, const Event &ev, const std::vector<std::uint32_t> &hosts) const {
    const BoundKey &use = cls.only->bind.front();
    keys_.expect(one_key(use, ev.slots[use.one_slot], hosts[ev.stream], static_cast<std::int32_t>(number_in(ev, cls.pid_slot, -1)), number_in(ev, cls.tid_slot, -1)));
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
