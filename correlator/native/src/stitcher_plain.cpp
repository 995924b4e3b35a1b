// SPDX-License-Identifier: MIT
// The short way through the stitcher, for what most events are: a point with one key, or with its thread alone, of an op that
// passes what others passed before.
#include "key_builder.hpp"
#include "stitcher.hpp"

namespace opline {

// What any_event() does for a plain point, where the op keeps its shape. False: nothing was done.
bool Stitcher::plain(const BoundClass &cls, BoundPoint &bp, const Event &ev, std::uint32_t host) {
    const std::int64_t tid = number_in(ev, cls.tid_slot, -1);
    const auto pid = static_cast<std::int32_t>(number_in(ev, cls.pid_slot, -1));
    ThreadState *ts = nullptr;
    Found working;
    if (threads_work_ || cls.comm_slot != kNoSlot) {
        ts = &thread(host, tid);
        if (ts->call) return false;
        if (threads_work_) working = current(*ts);
    }
    std::uint64_t ref = working.ref;
    Op *op = working.child == 0 ? working.op : nullptr;
    BoundKey *use = nullptr;
    if (!bp.find.empty()) {
        use = &bp.find.front();
        Key key;
        if (key_of(*use, ev, host, pid, tid, key) != KeyState::kKnown) return false;
        const std::uint64_t *named = keys_.find(key);
        if (!named) return false;
        ref = *named;
        op = ops_.itself(ref);
    }
    if (!op || op->partner != 0) return false;
    if (!op->transitions.push_known(bp.kinds[working.op == op], ev.ts_ns, tid, pid, ev.cpu, ts ? name_of(cls, ev, *ts) : 0)) return false;
    if (use) ++use->found;
    ++bp.transitions;
    op->global_spaces |= bp.global_spaces;
    if (bp.decorates) decorate(*op, bp, plan_.points[bp.spec], ev, tid, pid);
    if (bp.ends && (op->state == OpState::kOpen || !op->hard)) {
        end_op(*op, ev.ts_ns, op->transitions.last_order());
        stop_waiting(*op);
    }
    if (bp.thread != ThreadRule::kNone) apply_thread_rule(*ts, bp.thread, {op, 0, ref, use ? use->spaces : 0});
    if (!bp.release.empty()) release_keys(bp, ev, host, pid, tid);
    return true;
}

}  // namespace opline
