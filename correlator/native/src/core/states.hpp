// SPDX-License-Identifier: MIT
// Events of the scheduler, on their way to the threads' timelines.
#pragma once
#include <algorithm>

#include "binding/classes.hpp"
#include "event/thread_names.hpp"
#include "identity/threads.hpp"
#include "sched/cpu_runs.hpp"
#include "sched/sched.hpp"
#include "sched/told_locks.hpp"
#include "sched/told_runs.hpp"

namespace opline {

// From the field waker_irq (tracepoints/state_tp.h): the context on the waker's CPU.
inline WokenFrom woken_from(std::int64_t irq) {
    constexpr std::int64_t kNotKnown = 0xffff, kHrtimer = 2, kSoftirq = 16;  // softirq n: kSoftirq << n
    constexpr std::int64_t kTimers = kHrtimer | kSoftirq << 1 | kSoftirq << 8,
                           kNetworks = kSoftirq << 2 | kSoftirq << 3, kBlock = kSoftirq << 4;
    if (irq < 0 || irq == kNotKnown) return WokenFrom::kNotTold;
    if (irq == 0) return WokenFrom::kThread;
    if (irq & kBlock) return WokenFrom::kInterrupt;
    return irq & kTimers ? WokenFrom::kTimer : irq & kNetworks ? WokenFrom::kNetwork : WokenFrom::kInterrupt;
}

// The last wait of a thread that woke another thread, if no other event has this wait.
inline void note_waker(SchedTimelines &sched, const Threads &threads, const WakerSlots &s, const Event &ev,
                       std::uint32_t host, std::int64_t tid, std::int64_t woke_ns) {
    const auto time = [&](std::int32_t slot) { return threads.hosts.time(host, number_in(ev, slot, 0)); };
    const std::int64_t off_ns = time(s.off_at), on_ns = time(s.on_at), woken_ns = time(s.woken_at);
    if (off_ns <= 0 || on_ns < off_ns || woke_ns < on_ns || tid <= 0 || !sched.ends_before(host, tid, off_ns)) return;
    Waker by;
    by.tid = static_cast<std::int32_t>(threads.of_root(host, number_in(ev, s.waker_tid, -1)));
    by.from = woken_from(number_in(ev, s.waker_irq, -1));
    sched.on_switch(host, kNoCpu, off_ns, tid, number_in(ev, s.prev_state, 0), -1);
    sched.on_wake(host, std::max(woken_ns, off_ns), Wake::kWaking, woken_ns > 0 ? tid : -1, by);
    sched.on_switch(host, kNoCpu, on_ns, -1, 0, tid);
    sched.gone(host, tid, woke_ns);
}

// The lock that a thread slept for.
inline void note_lock(ToldLocks &locks, const Threads &threads, const BoundClass &cls, const Event &ev,
                      std::uint32_t host, NameIds &names) {
    const SchedSlots &s = cls.sched;
    HeldLock lock;
    lock.address = static_cast<std::uint64_t>(number_in(ev, s.lock, 0));
    lock.kind = lock_kind(number_in(ev, s.lock_flags, 0));
    const std::int64_t holder = number_in(ev, cls.tid_slot, 0);
    if (holder > 0) {
        lock.holder_tid = static_cast<std::int32_t>(threads.of_root(host, holder));
        lock.holder_comm = names.of(ev, cls.comm_slot);
    }
    locks.add(host, threads.of_root(host, number_in(ev, s.tid, -1)),
              threads.hosts.time(host, number_in(ev, s.off_at, 0)), lock);
}

// Takes a switch, a wake-up, or BPF's event for both (kOffCpu), with the thread that ran instead.
inline void note_state(SchedTimelines &sched, CpuRuns &runs, ToldRuns &told, const Threads &threads,
                       const BoundClass &cls, const Event &ev, std::uint32_t host, NameIds &names) {
    auto number = [&](std::int32_t slot) { return threads.of_root(host, number_in(ev, slot, -1)); };
    const SchedSlots &s = cls.sched;
    Waker by;
    by.tid = static_cast<std::int32_t>(cls.kind == ClassKind::kSchedSwitch ? -1 : number(cls.tid_slot));
    by.comm = names.of(ev, cls.comm_slot);
    if (cls.kind == ClassKind::kSchedSwitch) {
        const std::int64_t next_tid = number(s.next_tid);
        sched.on_switch(host, ev.cpu, ev.ts_ns, number(s.prev_tid), number_in(ev, s.prev_state, -1), next_tid);
        runs.on_switch(host, ev.cpu, ev.ts_ns, next_tid, by.comm);
    } else if (cls.kind == ClassKind::kRanInstead) {
        const std::int64_t until_ns = threads.hosts.time(host, number_in(ev, s.ran_until, 0));
        told.add(host, number(s.tid), until_ns > 0 ? until_ns : ev.ts_ns, {by.tid, by.comm},
                 number_in(ev, s.ran_ns, 0));
    } else if (cls.kind == ClassKind::kSchedWake) {
        if (ev.cpu < kNoWakerCpu) by.cpu = static_cast<std::uint16_t>(ev.cpu);
        sched.on_wake(host, ev.ts_ns, s.wake, number(s.tid), by);
    } else {
        const auto time = [&](std::int32_t slot) { return threads.hosts.time(host, number_in(ev, slot, 0)); };
        const std::int64_t tid = number(s.tid), off_ns = time(s.off_at), woken_ns = time(s.woken_at);
        if (off_ns > 0) sched.on_switch(host, kNoCpu, off_ns, tid, number_in(ev, s.prev_state, 0), -1);
        // Woken before the switch: the thread was about to sleep.
        by.from = woken_from(number_in(ev, s.waker.irq, -1));
        by.cpu = static_cast<std::uint16_t>(number_in(ev, s.waker.cpu, kNoWakerCpu));
        by.stack = static_cast<std::int32_t>(number_in(ev, s.waker.own_stack, -1));
        by.waker_stack = static_cast<std::int32_t>(number_in(ev, s.waker.stack, -1));
        sched.on_wake(host, std::max(woken_ns, off_ns), Wake::kWaking, woken_ns > 0 ? tid : -1, by);
        sched.on_switch(host, kNoCpu, ev.ts_ns, -1, 0, tid);
        if (by.from == WokenFrom::kThread) note_waker(sched, threads, s.waker, ev, host, by.tid, woken_ns);
    }
}

}  // namespace opline
