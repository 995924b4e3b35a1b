// SPDX-License-Identifier: MIT
// Events of the scheduler, on their way to the threads' timelines.
#pragma once
#include <algorithm>

#include "binding/classes.hpp"
#include "event/thread_names.hpp"
#include "identity/threads.hpp"
#include "sched/sched.hpp"

namespace opline {

// Takes a switch, a wake-up, or what BPF says of both together (kOffCpu).
inline void note_state(SchedTimelines &sched, const Threads &threads, const BoundClass &cls, const Event &ev,
                       std::uint32_t host, NameIds &names) {
    auto number = [&](std::int32_t slot) { return threads.of_root(host, number_in(ev, slot, -1)); };
    const SchedSlots &s = cls.sched;
    if (cls.kind == ClassKind::kSchedSwitch) {
        sched.on_switch(host, ev.cpu, ev.ts_ns, number(s.prev_tid), number_in(ev, s.prev_state, -1),
                        number(s.next_tid));
    } else if (cls.kind == ClassKind::kSchedWake) {
        sched.on_wake(host, ev.ts_ns, s.wake, number(s.tid), number(cls.tid_slot), names.of(ev, cls.comm_slot));
    } else {
        const std::int64_t tid = number(s.tid), off_ns = number_in(ev, s.off_at, 0),
                           woken_ns = number_in(ev, s.woken_at, 0);
        if (off_ns > 0) sched.on_switch(host, kNoCpu, off_ns, tid, number_in(ev, s.prev_state, 0), -1);
        // Woken before it was off: while it was about to sleep.
        sched.on_wake(host, std::max(woken_ns, off_ns), Wake::kWaking, woken_ns > 0 ? tid : -1, number(cls.tid_slot),
                      names.of(ev, cls.comm_slot));
        sched.on_switch(host, kNoCpu, ev.ts_ns, -1, 0, tid);
    }
}

}  // namespace opline
