// SPDX-License-Identifier: MIT
#include "binding/kernel_classes.hpp"

#include "event/providers.hpp"

namespace opline {

void bind_sched(BoundClass &c, std::string_view name, Slots &slots, bool states) {
    if (!states && name != "sched_waking") return;
    if (name == "sched_switch") {
        c.kind = ClassKind::kSchedSwitch;
        c.sched.prev_tid = slots.want_first({"prev_tid", "prev_pid"});
        c.sched.prev_state = slots.want("prev_state");
        c.sched.next_tid = slots.want_first({"next_tid", "next_pid"});
        c.comm_slot = slots.want("next_comm");
        return;
    }
    if (name == "sched_waking") c.sched.wake = Wake::kWaking;
    else if (name == "sched_wakeup") c.sched.wake = Wake::kWakeup;
    else if (name == "sched_wakeup_new") c.sched.wake = Wake::kNew;
    else return;
    c.kind = ClassKind::kSchedWake;
    c.sched.tid = slots.want_payload({"tid", "pid"});
    c.only_wakes = !states;
    if (!states) return;
    // The woken thread runs there. A sched_waking names the CPU of the thread's last run, perhaps off by now.
    if (c.sched.wake != Wake::kWaking) c.sched.cpu = slots.want("target_cpu");
    c.tid_slot = slots.want_context("tid");
    if (c.tid_slot == kNoSlot) c.tid_slot = slots.want_context("perf_tid");
    c.comm_slot = slots.want_context("procname");
}

// From BPF: one event for a thread back on a CPU, with the facts of sched_switch, sched_waking and sched_switch. The
// waker is payload.
void bind_off_cpu(BoundClass &c, Slots &slots) {
    c.kind = ClassKind::kOffCpu;
    c.sched.tid = slots.want("tid");
    c.sched.prev_state = slots.want("prev_state");
    c.sched.off_at = slots.want("off_at");
    c.sched.woken_at = slots.want("woken_at");
    c.tid_slot = slots.want("waker_tid");
    c.comm_slot = slots.want("waker_comm");
    c.sched.level = slots.want("level");
    c.sched.waker = {slots.want("waker_irq"),       slots.want("waker_cpu"),
                     slots.want("waker_on_at"),     slots.want("waker_off_at"),
                     slots.want("waker_woken_at"),  slots.want("waker_prev_state"),
                     slots.want("waker_waker_tid"), slots.want("waker_waker_irq"),
                     slots.want("waker_stack"),     slots.want("stack")};
}

void bind_ran_instead(BoundClass &c, Slots &slots) {
    c.kind = ClassKind::kRanInstead;
    c.sched.tid = slots.want("tid");
    c.tid_slot = slots.want("ran_tid");
    c.comm_slot = slots.want("ran_comm");
    c.sched.ran_ns = slots.want("ran_ns");
    c.sched.ran_until = slots.want("ran_until");
}

void bind_lock_wait(BoundClass &c, Slots &slots) {
    c.kind = ClassKind::kLockWait;
    c.sched.tid = slots.want("tid");
    c.sched.off_at = slots.want("off_at");
    c.tid_slot = slots.want("holder_tid");
    c.comm_slot = slots.want("holder_comm");
    c.sched.lock = slots.want("lock");
    c.sched.lock_flags = slots.want("lock_flags");
}

void bind_follow(BoundClass &c, Slots &slots) {
    c.kind = c.name == "sched:follow" ? ClassKind::kFollow : ClassKind::kFollowLost;
    c.sched.tid = slots.want("tid");
    c.sched.level = slots.want("level");
}

void bind_thread(BoundClass &c, Slots &slots) {
    c.kind = ClassKind::kThread;
    using Start = ThreadSlots::Start;
    c.thread = {Start::kTold,       slots.want("tid"),    slots.want("pid"),      slots.want("vtid"),
                slots.want("vpid"), slots.want("pid_ns"), slots.want("start_ns"), slots.want("cgroup")};
}

void bind_cgroup(BoundClass &c, Slots &slots) {
    c.kind = ClassKind::kCgroup;
    c.cgroup = {slots.want("cgroup"), slots.want("pid"), slots.want("tid"), slots.want("path")};
}

void bind_file_path(BoundClass &c, Slots &slots) {
    c.kind = ClassKind::kFilePath;
    c.file = {slots.want("file_dev"), slots.want("inode"), slots.want("generation"), slots.want("path")};
}

bool bind_tcp(BoundClass &c, std::string_view name, Slots &slots) {
    if (name != "tcp:send" && name != "tcp:receive") return false;
    const std::int32_t time = slots.want_payload({"ktime"}), socket = slots.want_payload({"socket"});
    if (time == kNoSlot || socket == kNoSlot) return false;  // an application's own provider with this name
    c.kind = ClassKind::kTcp;
    c.plan.time_slot = time;
    c.tid_slot = slots.want_payload({"tid"});
    c.pid_slot = slots.want_payload({"pid"});
    c.tcp = {name == "tcp:send",
             slots.want_payload({"local_high"}),
             slots.want_payload({"local_low"}),
             slots.want_payload({"local_port"}),
             slots.want_payload({"peer_high"}),
             slots.want_payload({"peer_low"}),
             slots.want_payload({"peer_port"}),
             socket,
             slots.want_payload({"position"}),
             slots.want_payload({"bytes"})};
    return true;
}

// The fork of lttng-modules (instrumentation/events/sched.h, 2.13) has the numbers of the child in every PID namespace
// of the child, from the root namespace down.
void bind_forked_thread(BoundClass &c, Slots &slots) {
    c.thread.start = ThreadSlots::Start::kNow;
    c.thread.tid = slots.want_payload({"child_tid"});
    c.thread.pid = slots.want_payload({"child_pid"});
    c.thread.vtid = slots.want_last("vtids");
    c.thread.pid_ns = slots.want_payload({"child_ns_inum"});
}

// A thread older than the session, and its number in one of its namespaces (lttng-statedump.h, 2.13).
void bind_dumped_thread(BoundClass &c, Slots &slots) {
    c.kind = ClassKind::kThread;
    c.thread.start = ThreadSlots::Start::kBefore;
    c.thread.tid = slots.want_payload({"tid"});
    c.thread.vtid = slots.want_payload({"vtid"});
    c.thread.pid_ns = slots.want_payload({"ns_inum"});
}

bool bind_process(BoundClass &c, std::string_view name, Slots &slots) {
    const bool of_bpf = starts_with(name, kBpfSched);
    if (!of_bpf && c.domain != Domain::kKernel) return false;
    name.remove_prefix(of_bpf ? kBpfSched.size() : starts_with(name, "sched_") ? 6 : 0);
    if (name == "process_fork") c.process.step = ProcessStep::kFork;
    else if (name == "process_exec") c.process.step = ProcessStep::kExec;
    else if (name == "process_exit") c.process.step = ProcessStep::kExit;
    else if (of_bpf && name == "process_runs") c.process.step = ProcessStep::kRuns;
    else return false;
    const bool fork = c.process.step == ProcessStep::kFork;
    c.kind = ClassKind::kProcess;
    c.process.of_all = !of_bpf;
    if (of_bpf) {
        c.plan.time_slot = slots.want("ktime");
        c.process.pid = slots.want("pid");
        c.process.parent = slots.want("parent_pid");
        c.comm_slot = slots.want("comm");
    } else {
        if (fork) bind_forked_thread(c, slots);
        c.process.pid = fork ? slots.want_payload({"child_pid"}) : slots.want_context("pid");
        c.process.tid = fork ? slots.want_payload({"child_tid"}) : slots.want_context("tid");
        c.process.parent = slots.want_payload({"parent_pid"});
        c.comm_slot = fork ? slots.want_payload({"child_comm"}) : slots.want_context("procname");
    }
    return true;
}

}  // namespace opline
