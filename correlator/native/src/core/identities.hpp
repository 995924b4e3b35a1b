// SPDX-License-Identifier: MIT
// Events with their threads as the core knows them (identity/threads.hpp), whatever they are called where they run.
#pragma once
#include <optional>
#include <vector>

#include "binding/classes.hpp"
#include "block/block.hpp"
#include "identity/threads.hpp"

namespace opline {

struct Identities {
    Identities() = default;
    explicit Identities(Hosts hosts) : threads(std::move(hosts)) {}

    Threads threads;

    // Must the point's thread and process be renumbered?
    bool renumbers(const BoundClass &cls, const Event &ev) const {
        return threads.has_aliases() || number_in(ev, cls.pid_ns_slot, kRootPidNs) != kRootPidNs;
    }
    // The event with other numbers, valid until the next call. The model's keys may use the two fields, too, and get
    // the same numbers.
    Event renumbered(const BoundClass &cls, const Event &ev, std::uint32_t host) {
        const std::int64_t pid_ns = number_in(ev, cls.pid_ns_slot, kRootPidNs), tid = number_in(ev, cls.tid_slot, -1),
                           pid = number_in(ev, cls.pid_slot, -1);
        const Threads::ThreadNumbers known =
            pid_ns == kRootPidNs ? Threads::ThreadNumbers{threads.of_root(host, tid), threads.of_root(host, pid)}
                                 : threads.of_namespace(host, pid_ns, tid, pid, ev.ts_ns);
        slots_.assign(ev.slots, ev.slots + cls.plan.wanted.size());
        if (tid >= 0) slots_[static_cast<std::size_t>(cls.tid_slot)].i = known.tid;
        if (pid >= 0) slots_[static_cast<std::size_t>(cls.pid_slot)].i = known.pid;
        Event out = ev;
        out.slots = slots_.data();
        return out;
    }
    void renumber(BlockEvent &b, std::uint32_t host) {
        if (!threads.has_aliases() && !threads.hosts.several()) return;
        b.dev = threads.hosts.device(host, b.dev);
        b.old_dev = threads.hosts.device(host, b.old_dev);
        b.tid = static_cast<std::int32_t>(threads.of_root(host, b.tid));
        b.pid = static_cast<std::int32_t>(threads.of_root(host, b.pid));
    }
    // Takes an event's facts about a thread. Returns the number if another thread had the number before. With facts of
    // BPF (which knows the begin of a thread), facts of the host's kernel domain are left out.
    std::optional<std::int64_t> learn(const ThreadSlots &s, const Event &ev, std::uint32_t host) {
        using Start = ThreadSlots::Start;
        if (s.start == Start::kTold) told_by_bpf_.put(host, true);
        else if (told_by_bpf_.contains(host)) return std::nullopt;
        auto number = [&](std::int32_t slot) { return number_in(ev, slot, -1); };
        const Hosts &hosts = threads.hosts;
        const ThreadFact fact{hosts.thread(host, number(s.tid)),
                              hosts.thread(host, number(s.pid)),
                              number(s.vtid),
                              number(s.vpid),
                              number(s.pid_ns),
                              s.start == Start::kTold  ? hosts.time(host, number(s.start_ns))
                              : s.start == Start::kNow ? ev.ts_ns
                                                       : kNoTime,
                              static_cast<std::uint64_t>(number_in(ev, s.cgroup, 0))};
        if (!threads.learn(host, fact)) return std::nullopt;
        return fact.tid;
    }

    // A process or one of its threads moved into a cgroup; or the name of a cgroup: `path`, pool id.
    void cgroup(const CgroupSlots &s, const Event &ev, std::uint32_t host, std::uint32_t path) {
        const auto number = static_cast<std::uint64_t>(number_in(ev, s.cgroup, 0));
        const std::int64_t pid = number_in(ev, s.pid, 0), tid = number_in(ev, s.tid, 0);
        if (s.path != kNoSlot) threads.cgroups.name(host, number, path);
        else if (pid > 0)
            threads.cgroups.entered(host, threads.of_root(host, pid), tid > 0 ? threads.of_root(host, tid) : 0, number);
    }

  private:
    std::vector<Slot> slots_;
    FlatMap<std::uint32_t, bool> told_by_bpf_;  // hosts
};

}  // namespace opline
