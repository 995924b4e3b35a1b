// SPDX-License-Identifier: MIT
#include "stitch/steps.hpp"

#include <algorithm>

namespace opline {
namespace {

constexpr std::size_t kThreadDepth = 64;
constexpr std::size_t kBatchWork = 1u << 14;  // points of one batch: more than that is a batch whose end nobody sees

}  // namespace

Stitcher::Stitcher(const Plan &plan, StringPool &strings, NameIds &names, Hooks hooks)
    : plan_(plan), strings_(strings), names_(names), hooks_(std::move(hooks)),
      completed_(strings.intern("completed")), reaped_(strings.intern("reaped")), queued_(strings.intern("queued")) {
    for (const auto &p : plan_.points) {
        has_soft_ends_ = has_soft_ends_ || p.role == Role::kSoftEnd;
        if (p.role != Role::kEnd) continue;
        for (const auto &use : p.find) end_spaces_ |= std::uint64_t{1} << use.space;
    }
}

Op *Stitcher::current_op(std::uint32_t host, std::int64_t tid) {
    ThreadState *ts = threads_.find(thread_key(host, tid));
    return ts ? current(*ts).op : nullptr;
}

Stitcher::Found Stitcher::current(ThreadState &ts) {
    auto &stack = ts.stack;
    while (!stack.empty()) {
        const auto target = ops_.resolve(stack.back().ref);
        if (target.op) return {target.op, target.child, stack.back().ref, stack.back().spaces};
        stack.pop_back();  // settled while the thread never said that it left
    }
    return {};
}

std::shared_ptr<Batch> Stitcher::current_batch(std::uint32_t host, std::int64_t tid) {
    ThreadState *ts = threads_.find(thread_key(host, tid));
    return ts ? ts->batch : nullptr;
}

void Stitcher::apply_thread_rule(ThreadState &ts, ThreadRule rule, const Found &found) {
    switch (rule) {
    case ThreadRule::kNone: return;
    case ThreadRule::kSwitch: ts.stack.clear(); [[fallthrough]];
    case ThreadRule::kEnter:
        if (ts.stack.size() >= kThreadDepth) ts.stack.erase(ts.stack.begin());  // a model that never leaves
        if (ts.stack.empty() || ts.stack.back().ref != found.ref) ts.stack.push_back({found.ref, found.spaces});
        return;
    case ThreadRule::kLeave:
        // Leaving an op that is not the innermost leaves everything that was entered inside it.
        for (std::size_t i = ts.stack.size(); i-- > 0;)
            if (ops_.find(ts.stack[i].ref) == found.op) {
                ts.stack.resize(i);
                return;
            }
        return;
    }
}

void Stitcher::open_batch(ThreadState &ts, const BoundPoint &bp, std::int64_t ts_ns, std::int64_t tid) {
    if (ts.batch) {
        ++counts_.batches_left_open;
        close_batch(ts, ts_ns);
    }
    ts.batch = std::make_shared<Batch>();
    ts.batch->serial = batch_serial_++;
    ts.batch->space = bp.batch_space;
    ts.batch->tid = tid;
    ts.batch->begin_ns = ts_ns;
    ts.batch->before = std::move(ts.done);
    ts.done.clear();
}

void Stitcher::close_batch(ThreadState &ts, std::int64_t ts_ns) {
    if (!ts.batch) return;
    Batch &batch = *ts.batch;
    batch.end_ns = ts_ns;
    for (const auto &t : batch.work) ts.done.emplace_back(t.ts_ns, t.point);
    if (batch.declared >= 0 && batch.declared != static_cast<std::int64_t>(batch.members)) ++counts_.batch_counts_differ;
    hooks_.batch_closed(batch);
    if (batch.alias != 0) {
        for (const auto &key : batch.keys)
            if (auto named = keys_.find(key); named && *named == batch.alias) keys_.erase(key);
        ops_.release(batch.alias);
        batch.alias = 0;
    }
    ts.batch.reset();
}

// Of several points that match the first whose predicate holds, whose facts are known, and that is not optional or finds
// its op.
BoundPoint *Stitcher::choose(BoundClass &cls, const Event &ev, std::uint32_t host, std::int32_t pid, std::int64_t tid,
                             bool &broken) {
    for (auto &p : cls.points) {
        if (p.broken) broken = broken || could_hold(p, ev);
        else if ((p.when.empty() || holds(p, ev)) && (!p.needs_facts || facts_known(p, ev, host, pid, tid)) &&
                 (!plan_.points[p.spec].optional || finds(p, ev, host, pid, tid)))
            return &p;
    }
    return nullptr;
}

Fate Stitcher::work_of(Batch &batch, Transition t, BoundPoint &bp) {
    t.batch = static_cast<std::int64_t>(batch.serial);
    t.order = static_cast<std::uint32_t>(batch.work.size());
    batch.work.push_back(t);
    ++bp.transitions;
    return Fate::kBatch;
}

Fate Stitcher::any_event(BoundClass &cls, const Event &ev, std::uint32_t host) {
    const std::int64_t tid = number_in(ev, cls.tid_slot, -1);
    const auto pid = static_cast<std::int32_t>(number_in(ev, cls.pid_slot, -1));
    bool broken = false;
    BoundPoint *bp = cls.only ? cls.only : choose(cls, ev, host, pid, tid, broken);
    if (!bp) return broken ? Fate::kOrphanMalformed : Fate::kIgnored;
    ++bp->seen;
    if (bp->plain && !cls.only && plain(cls, *bp, ev, host)) return Fate::kTransition;
    const PointSpec &spec = plan_.points[bp->spec];
    if (bp->begins && !cls.only && short_begins_ && begin(cls, *bp, ev, host)) return Fate::kTransition;
    ThreadState &ts = thread(host, tid);
    if (bp->mark != 0 || spec.learn != kNoFact) return note(*bp, spec, ev, ts, host, pid, tid);

    Transition t;
    t.ts_ns = ev.ts_ns;
    t.event = cls.name_id;
    t.spec = bp->spec;
    t.tid = tid;
    t.pid = pid;
    t.cpu = ev.cpu;
    t.comm = names_.of(ev, cls.comm_slot);
    t.point = bp->name_slot == kNoSlot ? bp->name_id : point_name(*bp, spec, ev.slots[bp->name_slot]);
    if (bp->at != 0)
        for (const auto &[mark, when] : ts.marks)
            if (mark == bp->at) t.ts_ns = when;

    if (spec.ios && spec.role != Role::kBegin) {
        if (!bp->ios_wait) return return_from_call(*bp, ev, t, ts);
        enter_call(ts, *bp, ev, host, pid, tid, nullptr);
        return Fate::kContext;
    }
    if (ts.call && spec.thread == ThreadRule::kSwitch) leave_call(ts);  // its exit was not seen

    if (spec.batch_do == BatchDo::kOpen ||
        ((!ts.batch || ts.batch->work.size() >= kBatchWork) &&
         (spec.batch_do == BatchDo::kOpenOrWork || spec.batch_do == BatchDo::kOpenOrJoin)))
        open_batch(ts, *bp, ev.ts_ns, tid);
    struct CloseAtExit {
        Stitcher &self; ThreadState &ts; bool on; std::int64_t at;
        ~CloseAtExit() { if (on) self.close_batch(ts, at); }
    } close_at_exit{*this, ts, spec.batch_do == BatchDo::kClose, ev.ts_ns};

    if (close_at_exit.on && ts.batch) ts.batch->declared = number_in(ev, bp->batch_count_slot, -1);

    // The op: a begin makes one; else the first find key that is bound; else, without keys, the thread's own.
    Found found;
    const Found working = current(ts);
    Key key;
    std::pair<std::uint32_t, Key> unbound[8];  // with their spaces
    std::size_t unbound_count = 0;
    std::uint64_t others[4];  // refs of what further keys name
    std::size_t other_count = 0;
    if (spec.role == Role::kBegin) {
        found.op = &new_op(host, pid, t.ts_ns);
        found.ref = op_ref(*found.op);
        if (!bp->bind.empty()) key_text(bp->bind.front(), ev, found.op->key_text);
        else if (bp->ios_submit) key_text(*bp->ios_submit, ev, found.op->key_text);
        t.evidence = Evidence::kBegin;
    } else if (bp->find.empty() && bp->sole.empty()) {
        found = working;
        t.evidence = Evidence::kThread;
        const bool shared = spec.batch_do == BatchDo::kWork || spec.batch_do == BatchDo::kOpenOrWork;
        if (ts.batch && (shared || !found.op) && (spec.batch_do != BatchDo::kNone || !found.op)) {
            t.evidence = Evidence::kBatch;
            for (const auto &use : bp->bind)
                if (key_of(use, ev, host, pid, tid, key) == KeyState::kKnown) bind_batch(*ts.batch, key);
            return work_of(*ts.batch, t, *bp);
        }
        if (!found.op) return Fate::kOrphanNoKey;
    } else {
        bool settled = false;
        for (auto &use : bp->find) {
            const KeyState state = key_of(use, ev, host, pid, tid, key);
            if (state == KeyState::kAbsent) return Fate::kOrphanMalformed;
            if (state == KeyState::kUnlearned) continue;
            t.spaces |= use.spaces;
            const std::uint64_t *ref = keys_.find(key);
            const auto named = ref ? ops_.resolve(*ref) : OpTable::Target{};
            if (named.batch && !found.op) {
                ++use.found;
                t.evidence = Evidence::kBatch;
                release_keys(*bp, ev, host, pid, tid);
                for (const auto &bound : bp->bind)
                    if (key_of(bound, ev, host, pid, tid, key) == KeyState::kKnown) bind_batch(*named.batch, key);
                return work_of(*named.batch, t, *bp);
            }
            if (named.op) {
                ++use.found;
                if (!found.op) {
                    found = {named.op, named.child, *ref, 0};
                    t.evidence = Evidence::kKey;
                    t.key_space = use.space;
                } else if (found.op != named.op && other_count < 4) {
                    others[other_count++] = *ref;
                }
            } else {
                ++use.missed;
                if (settled_keys_.contains(key)) settled = true;
                if (unbound_count < 8) unbound[unbound_count++] = {use.space, key};
            }
        }
        for (auto &use : bp->sole) {
            if (found.op || key_of(use, ev, host, pid, tid, key) != KeyState::kKnown) continue;
            found.op = waits_alone(key);
            ++(found.op ? use.found : use.missed);
            if (!found.op) continue;
            found.ref = op_ref(*found.op);
            stop_waiting(*found.op, key);
            t.spaces |= use.spaces;
            t.evidence = Evidence::kKey;
            t.key_space = use.space;
        }
        if (!found.op && spec.role == Role::kSoftBegin) {
            found.op = &new_op(host, pid, t.ts_ns);
            found.op->hard = false;
            found.ref = op_ref(*found.op);
            t.evidence = Evidence::kBegin;
            t.key_space = bp->find.front().space;
        }
        if (!found.op) {
            if (spec.role == Role::kEnd) ++counts_.ends_without_op;
            // A straggler that leaves its thread must not leave somebody else's op entered there.
            return settled ? Fate::kOrphanSettled : Fate::kOrphanNoOp;
        }
        if (spec.role == Role::kSoftBegin && !found.op->hard && found.child == 0) {
            found.op->begin_ns = std::min(found.op->begin_ns, t.ts_ns);
            name_op(*found.op, bp->find.front(), ev);
        }
    }
    if (spec.child) found.ref = begin_child(*found.op, found.child, found.child);
    for (std::size_t i = 0; i < other_count; ++i) {
        Op *other = ops_.find(others[i]);
        if (!other || other == found.op) continue;
        if (can_unite(*found.op, *other) || (spec.child && !other->hard)) {
            ++counts_.halves_joined;
            found.op = &unite(*found.op, *other, found.child, true);
        } else {
            ++counts_.key_conflicts;
        }
    }
    for (std::size_t i = 0; i < unbound_count; ++i) bind_key(*found.op, found.ref, unbound[i].first, unbound[i].second);
    for (auto &use : bp->bind) {
        if (key_of(use, ev, host, pid, tid, key) != KeyState::kKnown) continue;
        t.spaces |= use.spaces;
        bind_key(*found.op, found.ref, use.space, key);
    }
    if (found.child == 0) found.op->global_spaces |= bp->global_spaces;
    found.spaces = t.spaces;
    for (auto &use : bp->meet) {
        if (key_of(use, ev, host, pid, tid, key) != KeyState::kKnown) continue;
        bool sure = false;
        Op &met = meet(*found.op, found.child, key, plan_.key_spaces[use.space].by_order, tid, sure);
        ++(&met != found.op || sure ? use.found : use.missed);
        found.op = &met;
        if (sure) t.spaces |= use.spaces;
    }
    for (auto &use : bp->wait) {
        if (key_of(use, ev, host, pid, tid, key) != KeyState::kKnown) continue;
        t.spaces |= use.spaces;
        wait_under(*found.op, key);
    }
    if (!bp->meet.empty() || other_count != 0)  // the joint may have made it another op's child
        if (const auto target = ops_.resolve(found.ref); target.op) found.child = target.child;
    if (bp->ios_submit) t.spaces |= bp->ios_submit->spaces;
    const bool ends = found.child == 0 && (spec.role == Role::kEnd || spec.role == Role::kSoftEnd) &&
                      (spec.end_of.empty() || std::find(spec.end_of.begin(), spec.end_of.end(),
                                                        strings_.at(found.op->op_class)) != spec.end_of.end());
    if (ends && spec.role == Role::kEnd && found.op->state == OpState::kOpen) found.op = &join_partner(*found.op, t.ts_ns);

    Op &op = *found.op;
    t.in_thread = working.op && ops_.find(working.ref) == &op;
    t.child = found.child;
    decorate(op, *bp, ev, tid, pid);
    if ((spec.batch_do == BatchDo::kJoin || spec.batch_do == BatchDo::kOpenOrJoin) && ts.batch) {
        op.batches.push_back({ts.batch, static_cast<std::uint32_t>(op.transitions.size())});
        ++ts.batch->members;
    }
    append(op, t, *bp, ev);
    ++bp->transitions;
    if (ends && spec.role == Role::kSoftEnd) soften_end(op, t.ts_ns, op.transitions.last_order());
    if (ends && spec.role == Role::kEnd && (op.state == OpState::kOpen || !op.hard)) {
        end_op(op, t.ts_ns, op.transitions.last_order());
        stop_waiting(op);
    }
    apply_thread_rule(ts, spec.thread, found);
    if (bp->ios_submit) enter_call(ts, *bp, ev, host, pid, tid, &op);
    release_keys(*bp, ev, host, pid, tid);
    return Fate::kTransition;
}

}  // namespace opline
