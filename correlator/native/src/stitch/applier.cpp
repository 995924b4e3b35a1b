// SPDX-License-Identifier: MIT
#include "stitch/applier.hpp"

#include <algorithm>

namespace opline {

void Applier::apply(Passage &p) {
    FoundOp &found = p.found;
    if (p.spec.child) found.ref = lives_.begin_child(*found.op, found.child, found.child);
    if (!resolver_.others().empty()) unite_others(p);
    bind(p);
    if (p.bp.joins) join(p);
    if (p.bp.ios_submit) p.t.spaces |= p.bp.ios_submit->spaces;
    const bool last = ends(p);
    if (last && p.spec.role == Role::kEnd && found.op->state == OpState::kOpen)
        found.op = &joins_.join_partner(*found.op, p.t.ts_ns);

    Op &op = *found.op;
    p.t.in_thread = p.working.op && ops_.find(p.working.ref) == &op;
    p.t.child = found.child;
    if (p.bp.decorates) details_.decorate(op, p);
    if ((p.spec.batch_do == BatchDo::kJoin || p.spec.batch_do == BatchDo::kOpenOrJoin) && p.ts.batch) {
        op.batches.push_back({p.ts.batch, static_cast<std::uint32_t>(op.transitions.size())});
        ++p.ts.batch->members;
    }
    if (p.bp.slot.needs != kNoSlot) batches_.await(op, p);
    if (p.spec.batch_do == BatchDo::kLeave && !op.needs.empty()) batches_.leave(op);
    append(op, p);
    ++p.bp.transitions;
    if (last && p.spec.role == Role::kSoftEnd) {
        lives_.soften_end(op, p.t.ts_ns, op.transitions.last_order());
    } else if (last && (op.state == OpState::kOpen || !op.hard)) {
        lives_.end_op(op, p.t.ts_ns, op.transitions.last_order());
        joins_.stop_waiting(op);
    }
    if (p.spec.thread == ThreadRule::kSwitch) lives_.leave_sync(p.ts, op);
    threads_.apply(p.ts, p.spec.thread, found);
    if (p.bp.ios_submit) ios_.enter_call(p, &op);
    if (p.spec.ios.told == IoWindow::kEnd && op.state == OpState::kOpen)
        ios_.io_done(op, p.t.ts_ns, number_in(p.ev, p.bp.ios_posted, -1));
    keys_.release(p.bp, p.ev, p.who, &op);
}

// Further keys of the event name other ops. Either these ops are parts of `op`, or the keys contradict each other.
void Applier::unite_others(Passage &p) {
    Op *&op = p.found.op;
    for (const std::uint64_t ref : resolver_.others()) {
        Op *other = ops_.find(ref);
        if (!other || other == op) continue;
        if (joins_.can_unite(*op, *other) || (p.spec.child && !other->hard)) {
            ++s_.counts.halves_joined;
            op = &joins_.unite(*op, *other, p.found.child, true);
        } else {
            ++s_.counts.key_conflicts;
        }
    }
}

void Applier::bind(Passage &p) {
    FoundOp &found = p.found;
    for (const auto &[space, key] : resolver_.unbound()) keys_.bind(*found.op, found.ref, space, key);
    Key key;
    for (const auto &use : p.bp.bind) {
        if (keys_.key_of(use, p.ev, p.who, key) != KeyState::kKnown) continue;
        p.t.spaces |= use.spaces;
        keys_.bind(*found.op, found.ref, use.space, key);
    }
    if (found.child == 0) found.op->global_spaces |= p.bp.global_spaces;
    found.spaces = p.t.spaces;
}

void Applier::join(Passage &p) {
    FoundOp &found = p.found;
    Key key;
    for (auto &use : p.bp.meet) {
        if (keys_.key_of(use, p.ev, p.who, key) != KeyState::kKnown) continue;
        bool sure = false;
        Op &met = joins_.meet(*found.op, found.child, key, s_.plan.key_spaces[use.space].by_order, p.who.tid, sure);
        ++(&met != found.op || sure ? use.found : use.missed);
        found.op = &met;
        if (sure) p.t.spaces |= use.spaces;
    }
    for (const auto &use : p.bp.wait) {
        if (keys_.key_of(use, p.ev, p.who, key) != KeyState::kKnown) continue;
        p.t.spaces |= use.spaces;
        joins_.wait_under(*found.op, key);
    }
    if (!p.bp.meet.empty() || !resolver_.others().empty())  // the joint may have made the op a child of another op
        if (const auto target = ops_.resolve(found.ref); target.op) found.child = target.child;
}

// Whether the point ends the op.
bool Applier::ends(const Passage &p) const {
    if (p.found.child != 0 || (p.spec.role != Role::kEnd && p.spec.role != Role::kSoftEnd)) return false;
    const auto &classes = p.spec.end_of;
    return classes.empty() ||
           std::find(classes.begin(), classes.end(), s_.strings.at(p.found.op->op_class)) != classes.end();
}

void Applier::append(Op &op, const Passage &p) {
    lives_.add_transition(op, p.t);
    lives_.note_thread(p, op_ref(op));
}

}  // namespace opline
