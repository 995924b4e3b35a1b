// SPDX-License-Identifier: MIT
// The short ways through the stitcher, for what most events are: a point with one key, or with its thread alone, of an op that
// passes what others passed before; and a begin with one key.
#include "stitcher_bare.hpp"

namespace opline {

// Of a bare point's transition that an op has already.
void Stitcher::add_detail(const BoundClass &cls, const Event &ev, Op &op) {
    const std::uint32_t cpu = cls.cpu_slot == kNoSlot ? ev.cpu : static_cast<std::uint32_t>(ev.slots[cls.cpu_slot].bits());
    op.transitions.add_detail(cpu, names_.of(ev, cls.comm_slot));
}

// An op that is followed is open, so nothing was due for it; the key's space is among its since it was first found by it.
void Stitcher::does_more(const Event &ev, Op &op) {
    const BoundClass &cls = *classes_[ev.cls];
    if (op.transitions.detailed()) add_detail(cls, ev, op);
    if (!cls.bare->ends) return;
    ops_.ahead().now(ev.ts_ns, ev.stream);
    advance(ev.ts_ns, ev.stream);
    ends(op, *cls.bare, ev.ts_ns);
}

// How many of the trail the op could be given.
std::uint32_t Stitcher::go_step_by_step(Op &op, Place next_by, const Alongs &with, std::int64_t &ts_ns) {
    const Trail &all = *with.trail;
    const auto classes = classes_of(all);
    const Place from = op.transitions.place();
    std::uint32_t given = 0;
    for (; given != all.count && op.transitions.push_by(*bare_[classes[given]].kind, next_by, ts_ns + with.after_ns[given]); ++given) ts_ns += with.after_ns[given];
    if (given == all.count) {
        KnownTrail &known = trails_[all.number];
        known.trail = &all;
        known.steps[from % known.steps.size()] = {from | next_by, op.transitions.place()};
    }
    for (std::uint32_t i = 0; i != given; ++i) ++bare_[classes[i]].kind->followed;
    return given;
}

void Stitcher::count_trails() const {
    for (KnownTrail &known : trails_) {
        if (known.followed == 0) continue;
        for (const Trail *t = known.trail; t->count != 0; t = t->before) bare_[t->cls].kind->followed += known.followed;
        known.followed = 0;
    }
}

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
    if (!op || op->paired || op->transitions.push_known(bp.kinds[working.op == op], ev.ts_ns, tid, pid) == Shapes::kMaxThreads) return false;
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
bool Stitcher::begin(const BoundClass &cls, BoundPoint &bp, const Event &ev, std::uint32_t host, const Lead *lead) {
    const BoundKey &use = bp.bind.front();
    const bool followed = lead && lead->known;
    Lead own;
    if (!followed) {
        own.tid = number_in(ev, cls.tid_slot, -1);
        own.pid = static_cast<std::int32_t>(number_in(ev, cls.pid_slot, -1));
        if (key_of(use, ev, host, own.pid, own.tid, own.key) != KeyState::kKnown) return false;
        keys_.expect(own.key);
        lead = &own;
    }
    const std::int64_t tid = lead->tid;
    const std::int32_t pid = lead->pid;
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
    bind_key(op, ref, use.space, lead->key);
    op.global_spaces |= bp.global_spaces;
    if (followed) follow_from_here(ev, op, 0);
    if (bp.thread != ThreadRule::kNone) apply_thread_rule(*ts, bp.thread, {&op, 0, ref, bp.kinds[0].kind.spaces});
    return true;
}

}  // namespace opline
