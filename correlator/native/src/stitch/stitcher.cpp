// SPDX-License-Identifier: MIT
#include "stitch/stitcher.hpp"

#include <utility>

namespace opline {

Stitcher::Stitcher(const Plan &plan, StringPool &strings, NameIds &names, const Threads &identities,
                   Population &population, StitchHooks hooks)
    : s_{plan, strings, identities, population, std::move(hooks), {}},
      names_(names),
      lives_(s_, [this](Op &op) { settling_.settle(op); }),
      threads_(s_, lives_.ops()),
      keys_(s_, lives_),
      joins_(s_, lives_),
      settling_(s_, lives_, keys_, joins_),
      batches_(s_, lives_, keys_),
      ios_(s_, threads_, lives_, keys_),
      own_requests_(s_, lives_),
      awake_(strings.intern(kAwakeMark)),
      details_(s_, lives_),
      resolver_(s_, lives_, keys_, joins_, batches_),
      applier_(s_, threads_, lives_, keys_, joins_, batches_, ios_, details_, resolver_),
      locator_(s_, threads_, lives_, keys_, batches_, ios_) {}

void Stitcher::forget_thread(std::uint32_t host, std::int64_t tid, std::int64_t now_ns) {
    ThreadState *ts = threads_.find(host, tid);
    if (!ts) return;
    if (ts->call) ios_.leave_call(*ts);
    batches_.leave_open(*ts, now_ns);
    threads_.erase(host, tid);
}

void Stitcher::thread_ended(std::uint32_t host, std::int64_t tid, std::int64_t ts_ns) {
    for (const std::uint64_t key : threads_.thread_ended(host, tid, ts_ns)) lives_.thread_ended(key);
}

void Stitcher::process_ended(std::int32_t pid, std::int64_t ts_ns) {
    for (const std::uint64_t key : threads_.process_ended(pid, ts_ns)) lives_.thread_ended(key);
}

// The first matching point: the predicate holds, the facts are known, and the point is not optional or finds an op.
BoundPoint *Stitcher::choose(BoundClass &cls, const Event &ev, const ThreadId &who, bool &broken) {
    for (auto &p : cls.points) {
        if (p.broken) broken = broken || could_hold(p, ev);
        else if ((p.when.empty() || holds(p, ev)) && (!p.needs_facts || keys_.facts_known(p, ev, who)) &&
                 (!s_.plan.points[p.spec].optional || finds(p, ev, who)))
            return &p;
    }
    return nullptr;
}

[[gnu::always_inline]] inline Transition Stitcher::transition_of(const BoundClass &cls, BoundPoint &bp, const Event &ev,
                                                                 const ThreadId &who, ThreadState &ts) {
    Transition t;
    t.ts_ns = ev.ts_ns;
    t.event = cls.name_id;
    t.spec = bp.spec;
    t.tid = who.tid;
    t.pid = who.pid;
    t.cpu = ev.cpu;
    t.comm = names_.of(ev, cls.comm_slot);
    t.point =
        bp.slot.name == kNoSlot ? bp.name_id : details_.point_name(bp, s_.plan.points[bp.spec], ev.slots[bp.slot.name]);
    if (const auto *marked_ns = bp.at != 0 ? ts.marked_ns(bp.at) : nullptr) t.ts_ns = *marked_ns;
    return t;
}

// The one way of a point's event: choose the rule, find the op (resolve), give the op the event's data (apply).
Fate Stitcher::event(BoundClass &cls, const Event &ev, std::uint32_t host) {
    const Hosts &hosts = s_.identities.hosts;
    const auto pid = static_cast<std::int32_t>(hosts.thread(host, number_in(ev, cls.pid_slot, -1)));
    const std::int64_t tid = hosts.thread(host, number_in(ev, cls.tid_slot, -1));
    const ThreadId who{host, pid, tid, s_.identities.life(host, pid), s_.identities.life(host, tid)};
    bool broken = false;
    BoundPoint *bp = cls.only ? cls.only : choose(cls, ev, who, broken);
    if (!bp) return broken ? Fate::kOrphanMalformed : Fate::kIgnored;
    ++bp->seen;
    ThreadState &ts = threads_.of(host, who.tid);
    ts.last_ns = ev.ts_ns;
    ts.last_pid = pid;
    if (bp->notes) return note(*bp, ev, ts, who);

    Passage p{*bp, s_.plan.points[bp->spec], ev, who, ts, {}, {}, transition_of(cls, *bp, ev, who, ts)};
    if (pid >= 0) ts.pid = pid;
    if (bp->claims && p.t.comm != 0) ts.comm = p.t.comm;
    if (p.spec.message != MessageDo::kNone) tell_message(p);
    if (bp->of_call) return of_call(p);
    if (ts.call && p.spec.thread == ThreadRule::kSwitch && p.spec.ios.told == IoWindow::kNone)
        ios_.leave_call(ts);  // the exit of the call is missing
    return p.spec.batch_do == BatchDo::kNone ? pass(p) : of_batch(p);
}

// Every message is told, also a message without an op: a server traced alone has no op of its client.
void Stitcher::tell_message(const Passage &p) const {
    Key key;
    if (keys_.key_of(p.bp.identity.front(), p.ev, p.who, key) == KeyState::kKnown)
        s_.hooks.message(p.t, p.who.host, p.spec.message, key);
}

// A call that waits for I/Os, or returns after queueing I/Os or waiting for I/Os.
Fate Stitcher::of_call(Passage &p) {
    if (!p.bp.ios_wait && !p.bp.ios_submit) return ios_.return_from_call(p);
    ios_.enter_call(p, nullptr);
    return Fate::kContext;
}

// Acts on the thread's batch: opens a batch before the point, or closes the batch after the point.
Fate Stitcher::of_batch(Passage &p) {
    const BatchDo does = p.spec.batch_do;
    const bool reaches = p.bp.slot.reaches != kNoSlot;
    const bool opens_as_needed =
        does == BatchDo::kOpenOrWork || does == BatchDo::kOpenOrJoin || (does == BatchDo::kWork && reaches);
    if (does == BatchDo::kOpen || (opens_as_needed && (!p.ts.batch || Batches::is_full(*p.ts.batch))))
        batches_.open(p.ts, p.bp, p.ev.ts_ns, p.who.tid);
    if (reaches && p.ts.batch) batches_.reached(p);
    if (does != BatchDo::kClose && does != BatchDo::kLeave) return pass(p);
    if (p.ts.batch && does == BatchDo::kClose) p.ts.batch->declared = number_in(p.ev, p.bp.slot.members, -1);
    const Fate fate = pass(p);
    if (does == BatchDo::kClose || (p.ts.batch && p.ts.batch->space == p.bp.batch_space))
        batches_.close(p.ts, p.ev.ts_ns);
    return fate;
}

Fate Stitcher::pass(Passage &p) {
    p.working = threads_.current(p.ts);
    if (p.spec.ios.told == IoWindow::kBegin) p.found.op = &ios_.begin_told(p);
    const Fate fate = resolver_.resolve(p);
    if (fate != Fate::kTransition) return fate;
    applier_.apply(p);
    return fate;
}

void Stitcher::last_event(std::int64_t last_ns) {
    settling_.last_event(last_ns);
    threads_.each([this](ThreadState &ts) { batches_.report_open(ts); });
    ios_.finish();
}

// Whether an op or a batch can be found for the point: by the first key, or, without keys, by the thread.
bool Stitcher::finds(const BoundPoint &bp, const Event &ev, const ThreadId &who) {
    Key key;
    if (!bp.find.empty()) {
        if (keys_.key_of(bp.find.front(), ev, who, key) != KeyState::kKnown) return false;
        const std::uint64_t *ref = keys_.find(key);
        const auto target = ref ? lives_.ops().resolve(*ref) : OpTable::Resolved{};
        return target.op || target.batch;
    }
    for (const auto &use : bp.sole)
        if (keys_.key_of(use, ev, who, key) == KeyState::kKnown && joins_.waits_alone(key)) return true;
    if (!bp.sole.empty()) return false;
    const BatchDo does = s_.plan.points[bp.spec].batch_do;
    if (does != BatchDo::kWork && does != BatchDo::kOpenOrWork && does != BatchDo::kClose)
        return threads_.current_op(who.host, who.tid) != nullptr;
    // Work and end of a batch need a thread with an open batch. If the model has no opening point, the thread needs
    // work done before.
    const ThreadState *ts = threads_.find(who.host, who.tid);
    if (ts && ts->batch) return ts->batch->space == bp.batch_space;
    return ts && does != BatchDo::kWork && !ts->done.empty();
}

// Events without an op: facts about the thread, or about a value.
Fate Stitcher::note(const BoundPoint &bp, const Event &ev, ThreadState &ts, const ThreadId &who) {
    const PointSpec &spec = s_.plan.points[bp.spec];
    if (bp.mark != 0) {
        if (bp.mark == awake_) ts.marks.clear();  // forgets the marks made before the thread waited
        if (auto *marked_ns = ts.marked_ns(bp.mark)) *marked_ns = ev.ts_ns;
        else ts.marks.emplace_back(bp.mark, ev.ts_ns);
        if (s_.plan.behind && bp.mark == awake_ && !spec.aside)
            lives_.keep_thread_point(who.host, who.tid, {ev.ts_ns, ThreadPoint::kNobody, bp.name_id});
    }
    return spec.learn != kNoFact ? keys_.learn(bp, spec, ev, who) : Fate::kContext;
}

void Stitcher::events_lost() {
    threads_.each([](ThreadState &ts) { ts.marks.clear(); });
    ios_.events_lost();
}

}  // namespace opline
