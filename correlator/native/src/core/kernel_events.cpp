// SPDX-License-Identifier: MIT
// What the kernel says of threads' states and of CPUs.
#include "core/impl.hpp"

namespace opline {

// The kernel of this host ran something on that CPU.
void Core::Impl::cpu_named(std::int64_t cpu) {
    std::vector<bool> *known = cpus.find(current_host);
    if (!known || cpu < 0 || cpu >= kMostCpus ||
        (static_cast<std::size_t>(cpu) < known->size() && (*known)[static_cast<std::size_t>(cpu)]))
        return;
    if (known->size() <= static_cast<std::size_t>(cpu)) known->resize(static_cast<std::size_t>(cpu) + 1);
    (*known)[static_cast<std::size_t>(cpu)] = true;
    ++streams_missing;
    missing("CPU " + std::to_string(cpu), Domain::kKernel, kNoTime, kNoTime, 0);
}

void Core::Impl::learn_thread(const BoundClass &cls, const Event &ev) {
    if (const auto reused = identities.learn(cls.thread, ev, current_host))
        stitcher.forget_thread(current_host, *reused, ev.ts_ns);
}

void Core::Impl::woken(const BoundClass &cls, const Event &ev) {
    const std::int64_t tid = identities.threads.of_root(current_host, number_in(ev, cls.sched.tid, -1));
    blocks.here(current_host).woken(static_cast<std::int32_t>(tid), ev.cpu, ev.ts_ns);
}

// The thread that a completion wakes may have waited for the request.
void Core::Impl::request_ended(const Request &r) {
    if (sched_events == 0 || r.complete_ns == kNoTime || !tables.keeps_waits()) return;
    const Flush *flush = linker.requests().flush_of(r);
    DoneRequest done;
    done.request = r.id;
    done.queue_ns = r.queue_ns;
    done.getrq_ns = r.getrq_ns;
    done.preflush_ns = r.preflush_ns;
    done.issue_ns = flush ? flush->issue_ns : r.issue_ns;
    done.done_ns = std::max(r.complete_ns, r.end_ns);
    done.dev = r.dev;
    done.queue_tid = r.queue_tid;
    done.queue_comm = r.queue_comm;
    waits.requests.add(current_host, done.done_ns == block_at.ts_ns ? block_at.cpu : r.complete_cpu, done);
    if (waits.requests.added() >= kSchedChanges) forget_states();
}

void Core::Impl::name_device(const BoundClass &cls, const Event &ev) {
    if (cls.dev_slot == kNoSlot || cls.diskname_slot == kNoSlot) return;
    const Slot &name = ev.slots[cls.diskname_slot];
    if (name.kind != Slot::Kind::kString) return;
    const auto dev = static_cast<std::uint32_t>(ev.slots[cls.dev_slot].u);
    device_names[identities.threads.hosts.device(current_host, dev)] = std::string(name.str());
}

// In which cgroup a thread is, what a cgroup is called, or a file.
void Core::Impl::place_told(const BoundClass &cls, const Event &ev) {
    const std::int32_t slot = cls.kind == ClassKind::kCgroup ? cls.cgroup.path : cls.file.path;
    const bool text = slot != kNoSlot && ev.slots[slot].kind == Slot::Kind::kString;
    const std::uint32_t path = text ? strings.intern(ev.slots[slot].str()) : 0;
    if (cls.kind == ClassKind::kCgroup) return identities.cgroup(cls.cgroup, ev, current_host, path);
    const auto dev = static_cast<std::uint32_t>(number_in(ev, cls.file.dev, 0));
    stitcher.details().name_file(current_host, dev, static_cast<std::uint64_t>(number_in(ev, cls.file.inode, 0)), path);
}

void Core::Impl::tcp_call(const BoundClass &cls, const Event &ev) {
    const TcpSlots &s = cls.tcp;
    auto word = [&](std::int32_t slot) { return static_cast<std::uint64_t>(number_in(ev, slot, 0)); };
    auto end = [&](std::int32_t high, std::int32_t low, std::int32_t port) {
        return TcpEnd{word(high), word(low), static_cast<std::uint16_t>(word(port))};
    };
    TcpCall call;
    call.ts_ns = ev.ts_ns;
    call.send = s.send;
    call.local = end(s.local_high, s.local_low, s.local_port);
    call.peer = end(s.peer_high, s.peer_low, s.peer_port);
    call.socket = word(s.socket);
    call.position = static_cast<std::uint32_t>(word(s.position));
    call.bytes = static_cast<std::uint32_t>(word(s.bytes));
    call.host = current_host;
    call.pid = number_in(ev, cls.pid_slot, -1);
    call.tid = number_in(ev, cls.tid_slot, -1);
    tables.tcp(call);
}

// Some threads besides the recorded processes' have waits in the trace, too: as long as they are followed.
void Core::Impl::follow_event(const BoundClass &cls, const Event &ev) {
    if (cls.kind == ClassKind::kFollowLost) {
        followed.for_each([this](std::uint64_t, std::int64_t tid) { sched.gone(current_host, tid, kNoTime); });
        return;
    }
    const std::int64_t tid = identities.threads.of_root(current_host, number_in(ev, cls.sched.tid, -1));
    if (number_in(ev, cls.sched.level, 0) >= 0) {
        followed[thread_key(current_host, tid)] = tid;
        return;
    }
    followed.erase(thread_key(current_host, tid));
    sched.gone(current_host, tid, ev.ts_ns);
}

void Core::Impl::sched_event(const BoundClass &cls, const Event &ev) {
    if (sched_events++ == 0) sched_stream = ev.stream;
    note_state(sched, waits.runs, waits.told, identities.threads, cls, ev, current_host, names);
    cpu_named(number_in(ev, cls.sched.cpu, -1));
    if (sched.changes() >= kSchedChanges) forget_states();
}

void Core::Impl::forget_states() {
    std::int64_t oldest = last_ns;
    stitcher.ops().for_each_live([&](const Op &op) { oldest = std::min(oldest, op.begin_ns); });
    sched.forget_before(oldest);
    waits.forget_before(oldest);
}

}  // namespace opline
