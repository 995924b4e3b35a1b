// SPDX-License-Identifier: MIT
#include "identity/threads.hpp"

#include <algorithm>
#include <limits>

namespace opline {

std::int64_t Threads::look_up(std::uint32_t host, std::int64_t pid_ns, std::int64_t number, std::int64_t ts_ns) {
    if (number < 0) return -1;
    auto [known, made] = known_.insert({host_key(host, number), pid_ns});
    if (!made) return known->tid;
    const auto next = static_cast<std::uint32_t>(std::min<std::size_t>(namespaces_.size(), 255));
    auto [index, fresh] = namespaces_.insert({host_key(host, 0), pid_ns});
    if (fresh) *index = next;
    ++untold_;
    *known = {kFirstUntold | static_cast<std::int64_t>(*index) << 22 | (number & kOwnNumber), ts_ns};
    return known->tid;
}

// The thread that its namespace calls `own` is `tid`. One that was seen before the fact came keeps the number that it
// got then, unless it is another thread: one that was seen before this one began.
void Threads::name(std::uint32_t host, std::int64_t pid_ns, std::int64_t own, std::int64_t tid, std::int64_t start_ns) {
    auto [known, made] = known_.insert({host_key(host, own), pid_ns});
    if (!made && known->tid == tid) return;
    if (!made && is_untold_number(known->tid) && known->since_ns >= start_ns) {
        aliases_.put(host_key(host, tid), known->tid);
        told_.put(known->tid, true);
        return;
    }
    *known = {tid, kNoTime};
}

bool Threads::learn(std::uint32_t host, const ThreadFact &fact) {
    if (fact.tid <= 0) return false;
    const bool changed = take(host, fact);
    // Under the number by which it is known now.
    if (fact.cgroup != 0) cgroups.entered(host, fact.pid, of_root(host, fact.tid), fact.cgroup);
    return changed;
}

bool Threads::take(std::uint32_t host, const ThreadFact &fact) {
    auto [life, first] = lives_.insert(host_key(host, fact.tid));
    if (!first && fact.start_ns < life->start_ns) return false;  // of an earlier thread, or one that is known better
    const bool another = !first && fact.start_ns > life->start_ns;
    life->start_ns = fact.start_ns;
    if (another) {
        ++life->before;
        reused_ = true;
        aliases_.erase(host_key(host, fact.tid));
    }
    recent_ = {};
    if (fact.pid_ns != kRootPidNs && fact.vtid > 0) {
        name(host, fact.pid_ns, fact.vtid, fact.tid, fact.start_ns);
        // a process is older than a thread of it
        if (fact.vpid > 0 && fact.vpid != fact.vtid)
            name(host, fact.pid_ns, fact.vpid, fact.pid, std::numeric_limits<std::int64_t>::min() + 1);
    }
    return another;
}

}  // namespace opline
