// SPDX-License-Identifier: MIT
#include "stitch/steps.hpp"

#include <algorithm>

namespace opline {
namespace {

constexpr std::size_t kThreadDepth = 64;
constexpr std::size_t kBatchWork = 1u << 14;  // points of one batch: more than that is a batch whose end nobody sees

}  // namespace

Stitcher::Stitcher(const Plan &plan, StringPool &strings, NameIds &names, Hooks hooks)
    : plan_(plan),
      strings_(strings),
      names_(names),
      hooks_(std::move(hooks)),
      completed_(strings.intern("completed")),
      reaped_(strings.intern("reaped")),
      queued_(strings.intern("queued")),
      awake_(strings.intern(kAwakeMark)) {
    for (const auto &p : plan_.points) {
        has_soft_ends_ = has_soft_ends_ || p.role == Role::kSoftEnd;
        for (const auto &use : p.release)
            if (use.of_op()) lent_spaces_ |= std::uint64_t{1} << use.space;
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
    ts.batch->opened_in_need = bp.slot.needs != kNoSlot;
    ts.batch->before = std::move(ts.done);
    ts.done.clear();
}

void Stitcher::close_batch(ThreadState &ts, std::int64_t ts_ns) {
    if (!ts.batch) return;
    Batch &batch = *ts.batch;
    batch.end_ns = ts_ns;
    if (batch.reaches) cover(ts.batch);
    else if (batch.opened_in_need) keep_for_owner(ts.batch);
    if (batch.alias != 0) {
        for (const auto &key : batch.keys)
            if (auto named = keys_.find(key); named && *named == batch.alias) keys_.erase(key);
        ops_.release(batch.alias);
        batch.alias = 0;
    }
    if (batch.idle()) {
        ts.done = std::move(batch.before);
        ts.batch.reset();
        return;
    }
    for (const auto &t : batch.work) ts.done.emplace_back(t.ts_ns, t.point);
    if (batch.declared >= 0 && batch.declared != static_cast<std::int64_t>(batch.members))
        ++counts_.batch_counts_differ;
    hooks_.batch_closed(batch);
    ts.batch.reset();
}

// Of several points that match the first whose predicate holds, whose facts are known, and that is not optional or
// finds its op.
BoundPoint *Stitcher::choose(BoundClass &cls, const Event &ev, const ThreadId &who, bool &broken) {
    for (auto &p : cls.points) {
        if (p.broken) broken = broken || could_hold(p, ev);
        else if ((p.when.empty() || holds(p, ev)) && (!p.needs_facts || facts_known(p, ev, who)) &&
                 (!plan_.points[p.spec].optional || finds(p, ev, who)))
            return &p;
    }
    return nullptr;
}

// The one way of an event of a point: its rule is chosen, its op is found (resolve), and the op gets what it says
// (apply).
Fate Stitcher::event(BoundClass &cls, const Event &ev, std::uint32_t host) {
    const auto pid = static_cast<std::int32_t>(number_in(ev, cls.pid_slot, -1));
    const ThreadId who{host, pid, number_in(ev, cls.tid_slot, -1)};
    bool broken = false;
    BoundPoint *bp = cls.only ? cls.only : choose(cls, ev, who, broken);
    if (!bp) return broken ? Fate::kOrphanMalformed : Fate::kIgnored;
    ++bp->seen;
    ThreadState &ts = thread(host, who.tid);
    if (bp->notes) return note(*bp, ev, ts, who);

    Passage p{*bp, plan_.points[bp->spec], ev, who, ts, {}, {}, transition_of(cls, *bp, ev, who, ts)};
    if (bp->of_call) return of_call(p);
    if (ts.call && p.spec.thread == ThreadRule::kSwitch) leave_call(ts);  // its exit was not seen
    return p.spec.batch_do == BatchDo::kNone ? pass(p) : of_batch(p);
}

Transition Stitcher::transition_of(const BoundClass &cls, BoundPoint &bp, const Event &ev, const ThreadId &who,
                                   ThreadState &ts) {
    Transition t;
    t.ts_ns = ev.ts_ns;
    t.event = cls.name_id;
    t.spec = bp.spec;
    t.tid = who.tid;
    t.pid = who.pid;
    t.cpu = ev.cpu;
    t.comm = names_.of(ev, cls.comm_slot);
    t.point = bp.slot.name == kNoSlot ? bp.name_id : point_name(bp, plan_.points[bp.spec], ev.slots[bp.slot.name]);
    if (bp.at != 0) {
        if (const auto *marked_ns = ts.marked_ns(bp.at)) t.ts_ns = *marked_ns;
        else if (ts.marked_ns(awake_)) ++counts_.marks_missing;
    }
    return t;
}

// Of a call that waits for I/Os, or returns from queueing them or waiting for them.
Fate Stitcher::of_call(Passage &p) {
    if (!p.bp.ios_wait) return return_from_call(p);
    enter_call(p, nullptr);
    return Fate::kContext;
}

// What has to do with its thread's batch: it may open one before and close it afterwards.
Fate Stitcher::of_batch(Passage &p) {
    const BatchDo does = p.spec.batch_do;
    const bool reaches = p.bp.slot.reaches != kNoSlot;
    const bool opens_as_needed =
        does == BatchDo::kOpenOrWork || does == BatchDo::kOpenOrJoin || (does == BatchDo::kWork && reaches);
    if (does == BatchDo::kOpen || (opens_as_needed && (!p.ts.batch || p.ts.batch->work.size() >= kBatchWork)))
        open_batch(p.ts, p.bp, p.ev.ts_ns, p.who.tid);
    if (reaches && p.ts.batch) {
        p.ts.batch->reaches = true;
        p.ts.batch->reached = std::max(p.ts.batch->reached, p.ev.slots[p.bp.slot.reaches].bits());
        p.ts.batch->order = order_of(p.bp, p.ev, p.who.host);
    }
    if (does != BatchDo::kClose && does != BatchDo::kLeave) return pass(p);
    if (p.ts.batch && does == BatchDo::kClose) p.ts.batch->declared = number_in(p.ev, p.bp.slot.members, -1);
    const Fate fate = pass(p);
    if (does == BatchDo::kClose || (p.ts.batch && p.ts.batch->space == p.bp.batch_space)) close_batch(p.ts, p.ev.ts_ns);
    return fate;
}

Fate Stitcher::pass(Passage &p) {
    p.working = current(p.ts);
    const Fate fate = resolve(p);
    if (fate != Fate::kTransition) return fate;
    const auto same = [&p](const TransitionKind &passed) { return passed.point == p.t.point; };
    if (p.spec.once && p.found.op->transitions.any_kind(same)) return Fate::kContext;
    apply(p);
    return fate;
}

Fate Stitcher::work_of(Batch &batch, Passage &p) {
    p.t.evidence = Evidence::kBatch;
    Key key;
    for (const auto &use : p.bp.bind)
        if (key_of(use, p.ev, p.who, key) == KeyState::kKnown) bind_batch(batch, key);
    p.t.batch = static_cast<std::int64_t>(batch.serial);
    p.t.order = static_cast<std::uint32_t>(batch.work.size());
    batch.work.push_back(p.t);
    note_thread(p, ThreadPoint::of_batch(batch.serial));
    ++p.bp.transitions;
    return Fate::kBatch;
}

}  // namespace opline
