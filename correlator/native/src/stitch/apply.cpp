// SPDX-License-Identifier: MIT
// What comes of an event for the op that it is about: keys name the op, it is joined with others, it gets a transition,
// it ends, its thread works for it.
#include <algorithm>

#include "stitch/steps.hpp"

namespace opline {

void Stitcher::apply(Passage &p) {
    Found &found = p.found;
    if (p.spec.child) found.ref = begin_child(*found.op, found.child, found.child);
    if (!others_.empty()) unite_others(p);
    bind(p);
    if (p.bp.joins) join(p);
    if (p.bp.ios_submit) p.t.spaces |= p.bp.ios_submit->spaces;
    const bool last = ends(p);
    if (last && p.spec.role == Role::kEnd && found.op->state == OpState::kOpen)
        found.op = &join_partner(*found.op, p.t.ts_ns);

    Op &op = *found.op;
    p.t.in_thread = p.working.op && ops_.find(p.working.ref) == &op;
    p.t.child = found.child;
    if (p.bp.decorates) decorate(op, p);
    if ((p.spec.batch_do == BatchDo::kJoin || p.spec.batch_do == BatchDo::kOpenOrJoin) && p.ts.batch) {
        op.batches.push_back({p.ts.batch, static_cast<std::uint32_t>(op.transitions.size())});
        ++p.ts.batch->members;
    }
    if (p.bp.slot.needs != kNoSlot) await_batch(op, p);
    if (p.spec.batch_do == BatchDo::kLeave && !op.needs.empty()) leave_batches(op);
    append(op, p);
    ++p.bp.transitions;
    if (last && p.spec.role == Role::kSoftEnd) {
        soften_end(op, p.t.ts_ns, op.transitions.last_order());
    } else if (last && (op.state == OpState::kOpen || !op.hard)) {
        end_op(op, p.t.ts_ns, op.transitions.last_order());
        stop_waiting(op);
    }
    if (p.spec.thread == ThreadRule::kSwitch) leave_sync(p.ts, op);
    apply_thread_rule(p.ts, p.spec.thread, found);
    if (p.bp.ios_submit) enter_call(p, &op);
    release_keys(p.bp, p.ev, p.who, &op);
}

// Further keys of the event name other ops: they are parts of this one, or the keys are in conflict.
void Stitcher::unite_others(Passage &p) {
    Op *&op = p.found.op;
    for (const std::uint64_t ref : others_) {
        Op *other = ops_.find(ref);
        if (!other || other == op) continue;
        if (can_unite(*op, *other) || (p.spec.child && !other->hard)) {
            ++counts_.halves_joined;
            op = &unite(*op, *other, p.found.child, true);
        } else {
            ++counts_.key_conflicts;
        }
    }
}

void Stitcher::bind(Passage &p) {
    Found &found = p.found;
    for (const auto &[space, key] : unbound_) bind_key(*found.op, found.ref, space, key);
    Key key;
    for (const auto &use : p.bp.bind) {
        if (key_of(use, p.ev, p.who, key) != KeyState::kKnown) continue;
        p.t.spaces |= use.spaces;
        bind_key(*found.op, found.ref, use.space, key);
    }
    if (found.child == 0) found.op->global_spaces |= p.bp.global_spaces;
    found.spaces = p.t.spaces;
}

void Stitcher::join(Passage &p) {
    Found &found = p.found;
    Key key;
    for (auto &use : p.bp.meet) {
        if (key_of(use, p.ev, p.who, key) != KeyState::kKnown) continue;
        bool sure = false;
        Op &met = meet(*found.op, found.child, key, plan_.key_spaces[use.space].by_order, p.who.tid, sure);
        ++(&met != found.op || sure ? use.found : use.missed);
        found.op = &met;
        if (sure) p.t.spaces |= use.spaces;
    }
    for (const auto &use : p.bp.wait) {
        if (key_of(use, p.ev, p.who, key) != KeyState::kKnown) continue;
        p.t.spaces |= use.spaces;
        wait_under(*found.op, key);
    }
    if (!p.bp.meet.empty() || !others_.empty())  // the joint may have made it another op's child
        if (const auto target = ops_.resolve(found.ref); target.op) found.child = target.child;
}

// Whether the point ends its op.
bool Stitcher::ends(const Passage &p) const {
    if (p.found.child != 0 || (p.spec.role != Role::kEnd && p.spec.role != Role::kSoftEnd)) return false;
    const auto &classes = p.spec.end_of;
    return classes.empty() ||
           std::find(classes.begin(), classes.end(), strings_.at(p.found.op->op_class)) != classes.end();
}

}  // namespace opline
