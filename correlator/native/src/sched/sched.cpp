// SPDX-License-Identifier: MIT
#include "sched/sched.hpp"

#include <algorithm>

namespace opline {
namespace {

// Limits of changes after forget_before(): per thread (1.5 MB), and of all threads together (100 MB). Over the limit,
// the older half goes.
constexpr std::size_t kChangesKept = 1u << 16, kChangesInAll = 1u << 22;
constexpr std::size_t kMostParts = 64;  // reported parts of a stage; a stage with more has just the sums

std::uint64_t thread_of(std::uint32_t host, std::int64_t tid) {
    return (static_cast<std::uint64_t>(host) << 32) | static_cast<std::uint32_t>(tid);
}

// LTTng writes what the kernel's own tracepoint prints (__trace_sched_switch_state, include/trace/events/sched.h): 0
// running, 1 interruptible, 2 uninterruptible, 4 stopped, 8 traced, 16 dead, 32 zombie, 64 parked, 128 idle (a kernel
// thread without work). 256 and above (TASK_REPORT_MAX; 1024 to 4096 before 4.14): preempted, whatever the other bits.
ThreadRun run_after(std::int64_t prev_state) {
    constexpr std::int64_t kUninterruptible = 2, kStopped = 4, kTraced = 8, kDead = 16, kZombie = 32, kIdle = 128,
                           kPreempted = 256;
    if (prev_state == 0 || prev_state >= kPreempted) return ThreadRun::kRunnable;
    if (prev_state & kUninterruptible) return ThreadRun::kUninterruptible;
    if (prev_state & (kDead | kZombie)) return ThreadRun::kGone;
    if (prev_state & (kStopped | kTraced)) return ThreadRun::kStopped;
    return prev_state & kIdle ? ThreadRun::kIdle : ThreadRun::kSleeping;
}

// The parts of [begin, end) with at least one request between Q (or its first step) and its end, in time order:
// each(from, to).
template <class F>
void in_flight(std::int64_t begin_ns, std::int64_t end_ns, const std::vector<RequestCut> &requests, F each) {
    std::vector<std::pair<std::int64_t, std::int64_t>> parts;
    auto part_of = [&](const RequestCut &r) {
        std::int64_t first = kNoTime;
        for (std::size_t k = 0; k + 1 < kRequestSteps.size() && first == kNoTime; ++k) first = r.*kRequestSteps[k].time;
        if (first == kNoTime || r.c == kNoTime) return std::pair(end_ns, begin_ns);
        return std::pair(std::max(first, begin_ns), std::min(r.done_ns(), end_ns));
    };
    if (requests.size() == 1) {
        if (const auto [from, to] = part_of(requests.front()); from < to) each(from, to);
        return;
    }
    for (const auto &r : requests)
        if (const auto part = part_of(r); part.first < part.second) parts.push_back(part);
    std::sort(parts.begin(), parts.end());
    for (std::size_t i = 0; i < parts.size();) {
        auto [from, to] = parts[i];
        for (++i; i < parts.size() && parts[i].first <= to; ++i) to = std::max(to, parts[i].second);
        each(from, to);
    }
}

}  // namespace

void SchedTimelines::Timeline::forget(std::size_t until) {
    first = std::max(first, until);
    if (first * 2 < changes.size()) return;
    changes.erase(changes.begin(), changes.begin() + static_cast<std::ptrdiff_t>(first));
    first = 0;
}

// The first later change. Searches near the last answer, as questions come in order.
std::size_t SchedTimelines::Timeline::after(std::int64_t ns) const {
    constexpr int kNear = 16;
    std::size_t i = std::clamp(asked, first, changes.size());
    int steps = 0;
    while (steps < kNear && i < changes.size() && changes[i].ts_ns <= ns) ++i, ++steps;
    while (steps < kNear && i > first && changes[i - 1].ts_ns > ns) --i, ++steps;
    if (steps == kNear)
        i = static_cast<std::size_t>(std::upper_bound(changes.begin() + static_cast<std::ptrdiff_t>(first),
                                                      changes.end(), ns,
                                                      [](std::int64_t at, const Change &c) { return at < c.ts_ns; }) -
                                     changes.begin());
    return asked = i;
}

const SchedTimelines::Timeline *SchedTimelines::find(std::uint32_t host, std::int64_t tid) const {
    return threads_.find(thread_of(host, tid));
}

bool SchedTimelines::ends_before(std::uint32_t host, std::int64_t tid, std::int64_t ns) const {
    const Timeline *t = find(host, tid);
    return !t || t->changes.empty() || (t->changes.back().run == ThreadRun::kGone && t->changes.back().ts_ns <= ns);
}

void SchedTimelines::gone(std::uint32_t host, std::int64_t tid, std::int64_t ts_ns) {
    Timeline *t = threads_.find(thread_of(host, tid));
    if (!t || t->changes.empty()) return;
    if (ts_ns == kNoTime) t->changes.back().run = ThreadRun::kGone;
    else add(*t, {ts_ns, {}, kNoWakerCpu, ThreadRun::kGone, false});
}

bool SchedTimelines::knows(std::uint32_t host, std::int64_t tid) const {
    const Timeline *t = find(host, tid);
    return t && t->changes.size() > t->first;
}

ThreadSpell SchedTimelines::spell_at(const Timeline &t, std::size_t i) {
    const Change &c = t.changes[i];
    ThreadSpell spell{c.ts_ns, ThreadSpell::kGoesOn, c.run, false, {}, kNoCpu};
    if (i + 1 == t.changes.size()) return spell;
    const Change &next = t.changes[i + 1];
    spell.end_ns = next.ts_ns;
    spell.woken = next.wakeup;
    spell.by = next.by;
    if (next.cpu != kNoWakerCpu) spell.next_cpu = next.cpu;
    return spell;
}

void SchedTimelines::add(Timeline &t, Change c) {
    if (!t.changes.empty()) c.ts_ns = std::max(c.ts_ns, t.changes.back().ts_ns);
    ++changes_;
    t.changes.push_back(c);
    if (t.changes.size() - t.first > kChangesKept) t.forget(t.changes.size() - kChangesKept / 2);
}

// A switch of the CPU is missing: after their last change, both the departing and the arriving thread are unknown.
void SchedTimelines::missed(std::uint32_t host, const Running &ran, std::int64_t prev_tid) {
    ++missing_;
    if (Timeline *t = threads_.find(thread_of(host, ran.tid)))
        for (std::size_t i = t->changes.size(); i > t->first && t->changes[i - 1].ts_ns >= ran.since_ns; --i)
            if (t->changes[i - 1].ts_ns == ran.since_ns && t->changes[i - 1].run == ThreadRun::kOnCpu)
                t->changes[i - 1].run = ThreadRun::kGone;
    Timeline *t = threads_.find(thread_of(host, prev_tid));
    if (t && !t->changes.empty()) t->changes.back().run = ThreadRun::kGone;
}

void SchedTimelines::on_switch(std::uint32_t host, std::uint32_t cpu, std::int64_t ts_ns, std::int64_t prev_tid,
                               std::int64_t prev_state, std::int64_t next_tid) {
    if (cpu != kNoCpu) {
        auto [ran, first] = running_.insert(thread_of(host, cpu));
        if (!first && ran->tid != prev_tid) missed(host, *ran, prev_tid);
        *ran = {next_tid, ts_ns};
    }
    if (usable(ts_ns, prev_tid))
        add(threads_[thread_of(host, prev_tid)], {ts_ns, {}, kNoWakerCpu, run_after(prev_state), false});
    if (!usable(ts_ns, next_tid)) return;
    Timeline &next = threads_[thread_of(host, next_tid)];
    // The thread ran without a wake-up: the wake-up is missing, or a signal (also of io_uring's work) stopped the
    // sleep. The begin of the runnable time is unknown.
    if (wakes_seen() && !next.woken() && next.sleeps()) next.changes.back().run = ThreadRun::kGone;
    // The kernel writes both events, one after the other: with one of them present, only the count changes.
    if (wakings_seen_ && wakeups_seen_ && next.waking != next.wakeup) ++missing_;
    const bool fits = cpu < kNoWakerCpu;
    add(next, {ts_ns, {}, fits ? static_cast<std::uint16_t>(cpu) : kNoWakerCpu, ThreadRun::kOnCpu, false});
    next.waking = next.wakeup = false;
}

// Only a sleeper is woken. A wake-up may come between a thread's decision to sleep and the switch: sched_waking then
// comes before the switch, and sched_wakeup after the switch, on another CPU than the waker's.
void SchedTimelines::on_wake(std::uint32_t host, std::int64_t ts_ns, Wake kind, std::int64_t tid, const Waker &by) {
    (kind == Wake::kWaking ? wakings_seen_ : wakeups_seen_) = true;
    if (!usable(ts_ns, tid)) return;
    Timeline *t = kind == Wake::kNew ? &threads_[thread_of(host, tid)] : threads_.find(thread_of(host, tid));
    if (!t) return;  // the thread's earlier work is unknown
    if (kind == Wake::kWaking || !t->woken()) t->by = by;
    t->waking = t->waking || kind != Wake::kWakeup;
    t->wakeup = t->wakeup || kind != Wake::kWaking;
    if (t->sleeps() || kind == Wake::kNew) add(*t, {ts_ns, t->by, kNoWakerCpu, ThreadRun::kRunnable, true});
}

void SchedTimelines::lost(std::int64_t until_ns) {
    threads_.clear();
    running_.clear();
    begins_ns_ = std::max(begins_ns_, until_ns);
}

void SchedTimelines::forget_before(std::int64_t ns) {
    changes_ = 0;
    std::size_t kept = 0;
    threads_.erase_if([&](std::uint64_t, Timeline &t) {
        const auto begin = t.changes.begin() + static_cast<std::ptrdiff_t>(t.first);
        auto it =
            std::upper_bound(begin, t.changes.end(), ns, [](std::int64_t at, const Change &c) { return at < c.ts_ns; });
        // The last change before `ns` tells the thread's state at `ns`.
        if (it != begin) t.forget(static_cast<std::size_t>(it - t.changes.begin()) - 1);
        kept += t.changes.size() - t.first;
        return t.changes.size() == t.first + 1 && t.changes.back().run == ThreadRun::kGone;
    });
    if (kept <= kChangesInAll) return;  // an op without end would keep all changes
    threads_.for_each([](std::uint64_t, Timeline &t) { t.forget(t.first + (t.changes.size() - t.first) / 2); });
}

StateSplit SchedTimelines::split(std::uint32_t host, std::int64_t tid, std::int64_t begin_ns, std::int64_t end_ns,
                                 const std::vector<RequestCut> &requests, std::uint32_t stage,
                                 std::vector<StatePart> *parts) const {
    StateSplit out;
    const std::size_t before = parts ? parts->size() : 0;
    const Timeline *t = find(host, tid);
    if (!t || !wakes_seen() || end_ns > ends_ns_) return out;
    const std::size_t after = t->after(begin_ns);
    if (after == t->first) return out;
    auto at = t->changes.begin() + static_cast<std::ptrdiff_t>(after);
    for (--at; at != t->changes.end() && (at->ts_ns < end_ns || at->ts_ns <= begin_ns); ++at) {
        const auto next = at + 1;
        const std::int64_t from = std::max(at->ts_ns, begin_ns);
        const std::int64_t to = next == t->changes.end() ? end_ns : std::min(next->ts_ns, end_ns);
        if (at->wakeup && at->ts_ns > begin_ns) {
            out.woken_by_tid = at->by.tid;
            out.woken_by_comm = at->by.comm;
        }
        if (to <= from) continue;
        const Change *woken = at->wakeup && at->ts_ns >= begin_ns ? &*at : nullptr;
        auto add = [&](StateKind state, std::int64_t &sum, std::int64_t part_from, std::int64_t part_to) {
            if (part_to <= part_from) return;
            sum += part_to - part_from;
            if (!parts) return;
            // Preempted and running again at once, or two sleeps in a row: one part.
            if (parts->size() > before && parts->back().state == state && !woken) parts->back().end_ns = part_to;
            else
                parts->push_back(
                    {part_from, part_to, stage, state, woken ? woken->by.tid : -1, woken ? woken->by.comm : 0});
        };
        switch (at->run) {
        case ThreadRun::kOnCpu: add(StateKind::kOnCpu, out.on_cpu_ns, from, to); break;
        case ThreadRun::kRunnable: add(StateKind::kRunnable, out.runnable_ns, from, to); break;
        case ThreadRun::kUninterruptible: add(StateKind::kBlockedIo, out.blocked_io_ns, from, to); break;
        case ThreadRun::kStopped:
        case ThreadRun::kIdle:
        case ThreadRun::kSleeping: {
            std::int64_t reached = from;
            in_flight(from, to, requests, [&](std::int64_t io_from, std::int64_t io_to) {
                add(StateKind::kBlocked, out.blocked_ns, reached, io_from);
                add(StateKind::kBlockedIo, out.blocked_io_ns, io_from, io_to);
                reached = io_to;
            });
            add(StateKind::kBlocked, out.blocked_ns, reached, to);
            break;
        }
        case ThreadRun::kGone:
            if (parts) parts->resize(before);
            return {};
        }
    }
    if (parts && parts->size() - before > kMostParts) parts->resize(before);
    out.known = true;
    out.tid = tid;
    return out;
}

}  // namespace opline
