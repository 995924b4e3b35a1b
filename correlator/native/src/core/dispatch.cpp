// SPDX-License-Identifier: MIT
// Which part an event of a class goes to.
#include "core/impl.hpp"

namespace opline {

Fate Core::Impl::dispatch(BoundClass &cls, const Event &ev) {
    switch (cls.kind) {
    case ClassKind::kPoints: {
        Event own = ev;
        if (cls.cpu_slot != kNoSlot) own.cpu = static_cast<std::uint32_t>(ev.slots[cls.cpu_slot].bits());
        return point_event(cls, own);
    }
    case ClassKind::kPlug:
        ++block_events;
        blocks.here(common.now.host).passed(ev.ts_ns);
        return Fate::kContext;
    case ClassKind::kDeviceName: name_device(cls, ev); return Fate::kContext;
    case ClassKind::kRequest:
    case ClassKind::kBio:
    case ClassKind::kRequestThread: return whole_event(cls, ev);
    case ClassKind::kCollectorLost: shortfall.collector_told(cls, ev); return Fate::kContext;
    case ClassKind::kThread: learn_thread(cls, ev); return Fate::kContext;
    case ClassKind::kCgroup:
    case ClassKind::kFilePath: place_told(cls, ev); return Fate::kContext;
    case ClassKind::kTcp: tcp_call(cls, ev); return Fate::kContext;
    case ClassKind::kSchedWake:
        if (cls.sched.wake == Wake::kWaking && blocks.any_undecided()) woken(cls, ev);
        if (!cls.only_wakes) state_event(cls, ev);
        return Fate::kContext;
    case ClassKind::kSchedSwitch:
    case ClassKind::kRanInstead:
    case ClassKind::kLockWait:
    case ClassKind::kOffCpu: state_event(cls, ev); return Fate::kContext;
    case ClassKind::kFollow:
    case ClassKind::kFollowLost: states.follow(cls, ev); return Fate::kContext;
    case ClassKind::kProcess:
        if (cls.thread.tid != kNoSlot) learn_thread(cls, ev);
        members.process_step(cls, ev, common.now.host, common.identities.threads, common.names.of(ev, cls.comm_slot));
        if (cls.process.step == ProcessStep::kExit) thread_ended(cls, ev);
        return Fate::kContext;
    case ClassKind::kContext: return Fate::kContext;
    case ClassKind::kBlock:
    case ClassKind::kIgnored: break;
    }
    return Fate::kIgnored;
}

void Core::Impl::state_event(const BoundClass &cls, const Event &ev) {
    states.event(cls, ev);
    shortfall.cpu_named(number_in(ev, cls.sched.cpu, -1));
}

}  // namespace opline
