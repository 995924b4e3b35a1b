// SPDX-License-Identifier: MIT
// Who a thread is. A thread is its host, its number in the root PID namespace and its start; a process likewise. The
// number that its own PID namespace gives it is for display.
//
// Events of the kernel and of BPF have the root's numbers. Events of LTTng-UST have those of the thread's own namespace
// (contexts vtid, vpid) and the namespace (context pid_ns): they are translated here, before anybody looks at them.
// Facts in the trace tell what they are called: BPF's `sched:process_thread` (tracepoints/threads.bpf.c), the kernel
// domain's `sched_process_fork` and `lttng_statedump_process_pid_ns`. Where no fact tells it, the thread gets a number
// that no thread of the root has: it is never taken for another one, and an op of such a thread says so where it has no
// block request.
#pragma once
#include <array>
#include <cstdint>

#include "base/flat_map.hpp"
#include "base/host_key.hpp"
#include "event/event.hpp"
#include "identity/cgroups.hpp"
#include "identity/hosts.hpp"

namespace opline {

// The root PID namespace's inode: PROC_PID_INIT_INO, include/linux/proc_ns.h (Linux 3.8 to 6.18).
constexpr std::int64_t kRootPidNs = 0xEFFFFFFC;
// Numbers between these two are of threads that no fact has told: 8 bits name the namespace, 22 are the thread's own
// number, which is less than PID_MAX_LIMIT (include/linux/threads.h: 4 194 304). Larger ones are no kernel's: the
// context pthread_id, where a trace has no other name of a thread.
constexpr std::int64_t kFirstUntold = std::int64_t{1} << 30;
constexpr std::int64_t kEndUntold = std::int64_t{1} << 31;
constexpr bool is_untold_number(std::int64_t tid) { return tid >= kFirstUntold && tid < kEndUntold; }
constexpr std::int64_t kOwnNumber = (std::int64_t{1} << 22) - 1;

// The number to show: without the host's, and of a thread that no fact has told its own namespace's.
template <class Number>
constexpr Number display_number(Number tid) {
    return tid >= kFirstOfHosts && tid < kEndUntold ? tid & static_cast<Number>(kOwnNumber) : tid;
}

// What the kernel says of a thread. `tid`, `pid`: in the root PID namespace; `vtid`, `vpid`: in `pid_ns`, -1 if not
// told.
struct ThreadFact {
    std::int64_t tid = -1, pid = -1, vtid = -1, vpid = -1, pid_ns = kRootPidNs, start_ns = kNoTime;
    std::uint64_t cgroup = 0;  // its number; 0: not told
};

class Threads {
  public:
    struct ThreadNumbers {
        std::int64_t tid = -1;
        std::int64_t pid = -1;
    };

    Threads() = default;
    explicit Threads(Hosts of) : hosts(std::move(of)) {}

    Hosts hosts;
    Cgroups cgroups;  // by the numbers that threads are known by

    // Takes a fact, its numbers of the root namespace as hosts.thread() gives them. True: its number was another
    // thread's before, of which nothing holds any more.
    bool learn(std::uint32_t host, const ThreadFact &fact);

    // By what numbers a thread is known that is called vtid and vpid in that namespace, at the time of an event.
    ThreadNumbers of_namespace(std::uint32_t host, std::int64_t pid_ns, std::int64_t vtid, std::int64_t vpid,
                               std::int64_t ts_ns) {
        RecentName &r = recent_[static_cast<std::size_t>(vtid) % recent_.size()];
        if (r.host != host || r.pid_ns != pid_ns || r.vtid != vtid || r.vpid != vpid) {
            const std::int64_t pid = look_up(host, pid_ns, vpid, ts_ns);
            r = {host, pid_ns, vtid, vpid, {vtid == vpid ? pid : look_up(host, pid_ns, vtid, ts_ns), pid}};
        }
        return r.numbers;
    }

    // By what number a thread of the root namespace is known: its own, but for one that was known by another before a
    // fact told who it is.
    std::int64_t of_root(std::uint32_t host, std::int64_t tid) const {
        tid = hosts.thread(host, tid);
        if (aliases_.empty() || tid <= 0) return tid;
        const std::int64_t *alias = aliases_.find(host_key(host, tid));
        return alias ? *alias : tid;
    }
    // Some are known by another number: events of the root's numbers must be asked about.
    bool has_aliases() const { return !aliases_.empty(); }

    // How many threads or processes had this number before, as far as facts tell.
    std::uint32_t life(std::uint32_t host, std::int64_t number) const {
        if (!reused_) return 0;
        const ThreadLife *life = lives_.find(host_key(host, number));
        return life ? life->before : 0;
    }

    // No fact tells who this thread is.
    bool untold(std::int64_t tid) const { return is_untold_number(tid) && !told_.contains(tid); }
    // Of how many threads and processes that is so.
    std::uint64_t untold_count() const { return untold_ - told_.size(); }

  private:
    struct OwnName {  // of a thread in its namespace
        std::uint64_t host_and_number = 0;
        std::int64_t pid_ns = 0;
        bool operator==(const OwnName &o) const { return host_and_number == o.host_and_number && pid_ns == o.pid_ns; }
    };
    struct OwnNameHash {
        std::uint64_t operator()(const OwnName &n) const {
            return mix64(n.host_and_number ^ mix64(static_cast<std::uint64_t>(n.pid_ns)));
        }
    };
    struct ThreadLife {
        std::int64_t start_ns = kNoTime;  // of the thread that has the number now
        std::uint32_t before = 0;         // how many had it
    };
    struct NamedThread {
        std::int64_t tid = -1;
        std::int64_t since_ns = kNoTime;  // of one that no fact had told: its first event
    };
    struct RecentName {
        std::uint32_t host = 0;
        std::int64_t pid_ns = 0, vtid = -1, vpid = -1;
        ThreadNumbers numbers;
    };
    std::int64_t look_up(std::uint32_t host, std::int64_t pid_ns, std::int64_t number, std::int64_t ts_ns);
    bool take(std::uint32_t host, const ThreadFact &fact);
    void name(std::uint32_t host, std::int64_t pid_ns, std::int64_t own, std::int64_t tid, std::int64_t start_ns);

    FlatMap<OwnName, NamedThread, OwnNameHash> known_;
    FlatMap<OwnName, std::uint32_t, OwnNameHash> namespaces_;  // that have untold threads, numbered
    FlatMap<std::uint64_t, std::int64_t> aliases_;             // root number → the number it is known by
    FlatMap<std::int64_t, bool> told_;                         // of those numbers, the ones that a fact told later
    FlatMap<std::uint64_t, ThreadLife> lives_;
    bool reused_ = false;
    std::uint64_t untold_ = 0;
    std::array<RecentName, 64> recent_{};
};

}  // namespace opline
