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

// In which cgroup a thread is, what a cgroup is called, or a file.
void Core::Impl::place_told(const BoundClass &cls, const Event &ev) {
    const std::int32_t slot = cls.kind == ClassKind::kCgroup ? cls.cgroup.path : cls.file.path;
    const bool text = slot != kNoSlot && ev.slots[slot].kind == Slot::Kind::kString;
    const std::uint32_t path = text ? strings.intern(ev.slots[slot].str()) : 0;
    if (cls.kind == ClassKind::kCgroup) return identities.cgroup(cls.cgroup, ev, current_host, path);
    const auto dev = static_cast<std::uint32_t>(number_in(ev, cls.file.dev, 0));
    stitcher.details().name_file(current_host, dev, static_cast<std::uint64_t>(number_in(ev, cls.file.inode, 0)), path);
}

void Core::Impl::sched_event(const BoundClass &cls, const Event &ev) {
    if (sched_events++ == 0) sched_stream = ev.stream;
    note_state(sched, identities.threads, cls, ev, current_host, names);
    cpu_named(number_in(ev, cls.sched.cpu, -1));
    if (sched.changes() < kSchedChanges) return;
    std::int64_t oldest = last_ns;
    stitcher.ops().for_each_live([&](const Op &op) { oldest = std::min(oldest, op.begin_ns); });
    sched.forget_before(oldest);
}

}  // namespace opline
