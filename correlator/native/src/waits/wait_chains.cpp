// SPDX-License-Identifier: MIT
#include "waits/wait_chains.hpp"

#include <algorithm>

namespace opline {
namespace {

constexpr std::uint32_t kMostThreads = 8;         // in one chain
constexpr std::uint64_t kMostChanges = 1u << 14;  // of threads' states, for one wait
// A completion wakes the waiting thread within this time. Measured: 20 us with real devices, up to 300 us with emulated
// devices.
constexpr std::int64_t kNear_ns = 300'000;
constexpr std::int64_t kAtOnce_ns = 20'000;   // a thread that completes a request wakes the waiter within this time
constexpr std::int64_t kLate_ns = 1'000'000;  // for an interrupt on another CPU

}  // namespace

void WaitChains::begin_op(std::int64_t begin_ns) {
    floor_ns_ = begin_ns;
    of_op_.clear();
}

void WaitChains::add(WaitPart part) {
    if (part.begin_ns >= part.end_ns) return;
    if (!found_.empty() && found_.back().goes_on(part)) found_.back().end_ns = part.end_ns;
    else found_.push_back(part);
}

WaitPart WaitChains::part_of(const On &on, WaitKind kind, std::int64_t begin_ns, std::int64_t end_ns) {
    WaitPart part;
    part.begin_ns = begin_ns;
    part.end_ns = end_ns;
    part.kind = kind;
    part.depth = on.depth;
    part.path = on.path;
    part.tid = static_cast<std::int32_t>(on.tid);
    part.comm = on.comm;
    part.last_cause = on.last_cause;
    part.lock = on.lock;
    part.certain = on.certain;
    return part;
}

void WaitChains::add(const On &on, WaitKind kind, std::int64_t begin_ns, std::int64_t end_ns, WaitDoubt doubt) {
    WaitPart part = part_of(on, kind, begin_ns, end_ns);
    part.doubt = doubt;
    add(part);
}

std::uint32_t WaitChains::path_to(std::uint32_t path, std::uint32_t comm) {
    auto [to, added] = paths_.insert(std::uint64_t{path} << 32 | comm);
    if (added) {
        const std::string name = comm == 0 ? "?" : strings_.at(comm);
        *to = strings_.intern(path == 0 ? name : strings_.at(path) + " → " + name);
    }
    return *to;
}

WaitChains::On WaitChains::next(const On &on, std::int64_t tid, std::uint32_t comm, bool certain) {
    return {tid, comm, path_to(on.path, comm), on.depth + 1, on.certain && certain, &on, 0, on.lock};
}

// An idle kernel thread has no work, so the work arrived after the last idle time in the interval: until then the wait
// was for the thread that gave the work. Work done before was for others. Returns the end of the last idle time.
std::int64_t WaitChains::idle(const On &on, std::int64_t begin_ns, std::int64_t end_ns) {
    ThreadSpell last{};
    std::uint64_t left = kMostChanges;
    sched_.each_spell(host_, on.tid, begin_ns, end_ns, [&](const ThreadSpell &spell) {
        if (spell.run == ThreadRun::kIdle && spell.woken && spell.end_ns <= end_ns) last = spell;
        return --left > 0;
    });
    if (last.run != ThreadRun::kIdle || last.end_ns <= begin_ns) return begin_ns;
    sleep(on, last, begin_ns, last.end_ns);
    return last.end_ns;
}

// Explains all of the thread's time in the interval.
void WaitChains::follow(const On &on, std::int64_t begin_ns, std::int64_t end_ns) {
    std::int64_t reached_ns = idle(on, begin_ns, end_ns);
    begin_ns = reached_ns;
    sched_.each_spell(host_, on.tid, begin_ns, end_ns, [&](const ThreadSpell &spell) {
        const std::int64_t from = std::max(spell.begin_ns, begin_ns), to = std::min(spell.end_ns, end_ns);
        if (to <= from) return true;
        if (changes_left_ == 0) return false;
        --changes_left_;
        add(on, WaitKind::kThread, reached_ns, from);
        reached_ns = to;
        switch (spell.run) {
        case ThreadRun::kOnCpu: add(on, WaitKind::kWork, from, to); break;
        case ThreadRun::kGone: add(on, WaitKind::kThread, from, to); break;
        default: sleep(on, spell, from, to);
        }
        return true;
    });
    const bool seen = reached_ns > begin_ns || changes_left_ > 0;
    add(on, seen ? WaitKind::kThread : WaitKind::kUnknown, reached_ns, end_ns,
        seen ? WaitDoubt::kNone : WaitDoubt::kTooLong);
}

const DoneRequest *WaitChains::completion(const On &on, const ThreadSpell &spell, bool &certain) const {
    const Waker &by = spell.by;
    const std::int64_t woken_ns = spell.end_ns;
    const auto fits = [&](const DoneRequest *r, std::int64_t within_ns) {
        return r && r->done_ns >= spell.begin_ns && woken_ns - r->done_ns <= within_ns;
    };
    const bool idle = by.tid == 0, told = by.from != WokenFrom::kNotTold;
    const DoneRequest *own = requests.last_of(host_, on.tid, woken_ns);
    const DoneRequest *last = by.cpu == kNoWakerCpu ? nullptr : requests.last_on(host_, by.cpu, woken_ns);
    if (fits(last, kNear_ns)) {
        const bool is_own = own && own->request == last->request;
        certain = told || idle || is_own;
        if (by.from == WokenFrom::kInterrupt) return last;
        // A thread that completes requests itself (loop device), or a device that is a timer (null_blk).
        if (told) return is_own && fits(last, kAtOnce_ns) ? last : nullptr;
        const std::int64_t since_ns = runs.since(host_, by.cpu, woken_ns);
        if (since_ns == kNoTime ? idle || is_own : since_ns <= last->done_ns) return last;
    }
    if (told && by.from != WokenFrom::kInterrupt) return nullptr;
    // The completion came on another CPU, or the trace does not have the CPU.
    certain = false;
    if (told || idle) return fits(own, kLate_ns) ? own : nullptr;
    return by.cpu == kNoWakerCpu && fits(own, kNear_ns) ? own : nullptr;
}

std::uint32_t WaitChains::cause_of(const ThreadSpell &spell) const {
    if (!spell.woken || spell.run == ThreadRun::kRunnable) return 0;
    return causes.of(host_, spell.by.stack, spell.by.waker_stack);
}

// The chain's first lock, else the lock that the thread sleeps for. With a futex, the waker held the lock.
HeldLock WaitChains::lock_of(const On &on, const ThreadSpell &spell) const {
    const HeldLock *told = on.lock.address == 0 ? locks.of(host_, on.tid, spell.begin_ns) : nullptr;
    if (!told) return on.lock;
    HeldLock lock = *told;
    if (lock.kind == LockKind::kFutex && spell.woken && spell.by.from == WokenFrom::kThread) {
        lock.holder_tid = spell.by.tid;
        lock.holder_comm = spell.by.comm;
    }
    return lock;
}

void WaitChains::sleep(const On &thread, const ThreadSpell &spell, std::int64_t begin_ns, std::int64_t end_ns) {
    On on = thread;
    on.last_cause = cause_of(spell);
    if (spell.run == ThreadRun::kRunnable) {
        WaitPart part = part_of(on, WaitKind::kCpu, begin_ns, end_ns);
        CpuRuns::Ran ran = runs.most(host_, spell.next_cpu, begin_ns, end_ns, on.tid);
        if (ran.tid < 0) ran = told.most(host_, on.tid, spell.begin_ns, spell.end_ns, begin_ns, end_ns);
        part.instead_tid = ran.tid;
        part.instead_comm = ran.comm;
        return add(part);
    }
    on.lock = lock_of(on, spell);
    if (!spell.woken || end_ns < spell.end_ns)
        return add(on, WaitKind::kUnknown, begin_ns, end_ns, WaitDoubt::kNoWaking);
    const Waker &by = spell.by;
    const bool by_thread = by.from == WokenFrom::kThread || (by.from == WokenFrom::kNotTold && by.tid > 0);
    if (spell.run == ThreadRun::kStopped && by_thread) {
        WaitPart part =
            part_of(next(on, by.tid, by.comm, by.from == WokenFrom::kThread), WaitKind::kStopped, begin_ns, end_ns);
        part.last_cause = on.last_cause;
        part.lock = on.lock;
        return add(part);
    }
    bool certain = false;
    if (const DoneRequest *request = completion(on, spell, certain))
        return by_request(on, *request, spell, begin_ns, end_ns, certain);
    if (by.from == WokenFrom::kNotTold && by.tid < 0)
        return add(on, WaitKind::kUnknown, begin_ns, end_ns, WaitDoubt::kNoWaking);
    if (!by_thread) {
        const WaitKind kind = by.from == WokenFrom::kTimer     ? WaitKind::kTimer
                              : by.from == WokenFrom::kNetwork ? WaitKind::kNetwork
                                                               : WaitKind::kInterrupt;
        return add(on, kind, begin_ns, end_ns);
    }
    if (on.passed(by.tid)) return add(on, WaitKind::kUnknown, begin_ns, end_ns, WaitDoubt::kCycle);
    if (on.depth >= kMostThreads) return add(on, WaitKind::kUnknown, begin_ns, end_ns, WaitDoubt::kTooLong);
    follow(next(on, by.tid, by.comm, by.from == WokenFrom::kThread), begin_ns, end_ns);
}

void WaitChains::by_request(const On &on, const DoneRequest &r, const ThreadSpell &spell, std::int64_t begin_ns,
                            std::int64_t end_ns, bool certain) {
    const std::int64_t done_ns = std::clamp(r.done_ns, begin_ns, end_ns);
    const std::int64_t issue_ns = std::clamp(r.issue_ns == kNoTime ? r.done_ns : r.issue_ns, begin_ns, done_ns);
    const std::int64_t queue_ns = std::clamp(r.queue_ns == kNoTime ? r.issue_ns : r.queue_ns, begin_ns, issue_ns);
    before_request(on, r, begin_ns, queue_ns);
    WaitPart part;
    part.depth = on.depth;
    part.path = on.path;
    part.request = r.request;
    part.last_cause = on.last_cause;
    part.lock = on.lock;
    part.tid = r.queue_tid;
    part.comm = r.queue_comm;
    part.certain = on.certain && certain;
    const auto stretch = [&](WaitKind kind, std::int64_t from, std::int64_t to) {
        part.kind = kind;
        part.begin_ns = from;
        part.end_ns = to;
        add(part);
    };
    // The flush before the data is the device's time.
    const bool flushed = r.preflush_ns != kNoTime && r.getrq_ns != kNoTime;
    const std::int64_t flush_ns = std::clamp(flushed ? r.getrq_ns : issue_ns, queue_ns, issue_ns);
    const std::int64_t flushed_ns = std::clamp(flushed ? r.preflush_ns : issue_ns, flush_ns, issue_ns);
    stretch(WaitKind::kQueue, queue_ns, flush_ns);
    stretch(WaitKind::kDevice, flush_ns, flushed_ns);
    stretch(WaitKind::kQueue, flushed_ns, issue_ns);
    // Kernel threads do the work of a loop device's requests; one of these threads completes the requests.
    constexpr std::uint32_t kLoop = 7;
    const Waker &by = spell.by;
    if (r.dev >> 20 == kLoop && by.from == WokenFrom::kThread && by.tid > 0 && !on.passed(by.tid) &&
        on.depth < kMostThreads && sched_.knows(host_, by.tid))
        follow(next(on, by.tid, by.comm, certain), issue_ns, done_ns);
    else stretch(WaitKind::kDevice, issue_ns, done_ns);
    stretch(WaitKind::kCompletion, done_ns, end_ns);
}

// The thread slept before the request existed: the wait was for the thread that made the request.
void WaitChains::before_request(const On &on, const DoneRequest &r, std::int64_t begin_ns, std::int64_t end_ns) {
    if (begin_ns >= end_ns) return;
    if (r.queue_tid > 0 && !on.passed(r.queue_tid) && on.depth < kMostThreads)
        return follow(next(on, r.queue_tid, r.queue_comm, true), begin_ns, end_ns);
    add(on, WaitKind::kUnknown, begin_ns, end_ns, WaitDoubt::kBeforeRequest);
}

const WaitChains::WholeWait &WaitChains::whole(std::uint32_t host, std::int64_t tid, const ThreadSpell &spell,
                                               std::int64_t until_ns) {
    const bool ends = spell.end_ns != ThreadSpell::kGoesOn;
    // Stages come in order of time: the last wait of the thread is the current wait or an earlier wait.
    auto known = std::find_if(of_op_.rbegin(), of_op_.rend(), [&](const WholeWait &w) { return w.tid == tid; });
    if (known != of_op_.rend() && known->begin_ns != spell.begin_ns) known = of_op_.rend();
    if (known != of_op_.rend() && ends) return *known;
    host_ = host;
    changes_left_ = kMostChanges;
    found_.clear();
    const On own{tid, 0, 0, 0, true, nullptr, 0, {}};
    sleep(own, spell, std::max(spell.begin_ns, floor_ns_), ends ? spell.end_ns : until_ns);
    if (known == of_op_.rend()) return of_op_.push_back({tid, spell.begin_ns, ++waits_, found_}), of_op_.back();
    known->parts = found_;
    return *known;
}

void WaitChains::explain(std::uint32_t host, std::int64_t tid, std::int64_t begin_ns, std::int64_t end_ns,
                         std::uint32_t stage, Parts &parts) {
    host_ = host;
    sched_.each_spell(host, tid, begin_ns, end_ns, [&](const ThreadSpell &spell) {
        const bool waits = spell.run != ThreadRun::kOnCpu && spell.run != ThreadRun::kGone;
        if (!waits || spell.begin_ns == spell.end_ns) return true;
        const WholeWait &wait = whole(host, tid, spell, end_ns);
        for (WaitPart part : wait.parts) {
            part.begin_ns = std::max(part.begin_ns, begin_ns);
            part.end_ns = std::min(part.end_ns, end_ns);
            if (part.begin_ns >= part.end_ns) continue;
            part.ns = part.end_ns - part.begin_ns;
            part.stage = stage;
            part.wait = wait.number;
            if (spell.woken) part.stack = spell.by.stack, part.waker_stack = spell.by.waker_stack;
            part.cause = cause_of(spell);
            parts.push_back(part);
        }
        return true;
    });
}

}  // namespace opline
