// SPDX-License-Identifier: MIT
// The short ways through the stitcher, for what most events are: a point with one key, or with its thread alone, of an op that
// passes what others passed before; and a begin with one key.
#include "stitch/steps.hpp"

namespace opline {

// What any_event() does for a plain point, where the op keeps its shape. False: nothing was done.
bool Stitcher::plain(const BoundClass &cls, BoundPoint &bp, const Event &ev, std::uint32_t host) {
    const std::int64_t tid = number_in(ev, cls.tid_slot, -1);
    const auto pid = static_cast<std::int32_t>(number_in(ev, cls.pid_slot, -1));
    ThreadState *ts = nullptr;
    Found working;
    if (plan_.threads_work) {
        ts = &thread(host, tid);
        if (ts->call) return false;
        working = current(*ts);
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
    if (!op || op->paired || !op->transitions.push_known(bp.kinds[working.op == op], ev.ts_ns, tid, pid)) return false;
    if (op->transitions.detailed()) op->transitions.add_detail(ev.cpu, names_.of(ev, cls.comm_slot));
    if (use) ++use->found;
    if (bp.decorates) decorate(*op, bp, ev, tid, pid);
    ++bp.transitions;
    passed(*op, bp, ev.ts_ns);
    if (bp.thread != ThreadRule::kNone) apply_thread_rule(*ts, bp.thread, {op, 0, ref, use ? use->spaces : 0});
    if (!bp.release.empty()) release_keys(bp, ev, host, pid, tid);
    return true;
}

// What any_event() does for a point that begins. False: nothing was done.
bool Stitcher::begin(const BoundClass &cls, BoundPoint &bp, const Event &ev, std::uint32_t host) {
    const BoundKey &use = bp.bind.front();
    const std::int64_t tid = number_in(ev, cls.tid_slot, -1);
    const auto pid = static_cast<std::int32_t>(number_in(ev, cls.pid_slot, -1));
    Key key;
    if (key_of(use, ev, host, pid, tid, key) != KeyState::kKnown) return false;
    ThreadState *ts = nullptr;
    if (plan_.threads_work) {
        ts = &thread(host, tid);
        if (ts->call) return false;
        current(*ts);
    }
    Op &op = new_op(host, pid, ev.ts_ns);
    const std::uint64_t ref = op_ref(op);
    key_text(use, ev, op.key_text);
    if (bp.decorates) decorate(op, bp, ev, tid, pid);
    op.transitions.push_first(bp.kinds[0], ev.ts_ns, tid, pid, ev.cpu, names_.of(ev, cls.comm_slot));
    ++bp.transitions;
    bind_key(op, ref, use.space, key);
    op.global_spaces |= bp.global_spaces;
    if (bp.thread != ThreadRule::kNone) apply_thread_rule(*ts, bp.thread, {&op, 0, ref, bp.kinds[0].kind.spaces});
    return true;
}

}  // namespace opline
