// SPDX-License-Identifier: MIT
// What threads waited for. A wait ends because another context wakes the thread. What the waker did meanwhile is what
// the wait was spent on: it ran, waited for a CPU, or waited itself, which is followed in the same way. A wake-up by a
// block request's completion leads to the request.
#pragma once
#include <cstdint>
#include <vector>

#include "base/strings.hpp"
#include "sched/cpu_runs.hpp"
#include "sched/sched.hpp"
#include "sched/told_locks.hpp"
#include "sched/told_runs.hpp"
#include "waits/done_requests.hpp"
#include "waits/stack_causes.hpp"
#include "waits/wait_part.hpp"

namespace opline {

class WaitChains {
  public:
    WaitChains(const SchedTimelines &sched, StringPool &strings) : sched_(sched), strings_(strings) {}

    CpuRuns runs;
    ToldRuns told;
    ToldLocks locks;
    DoneRequests requests;
    StackCauses causes;
    // Switches, wake-ups or completions are missing.
    void lost() { runs.lost(), requests.lost(); }
    void forget_before(std::int64_t ns) {
        runs.forget_before(ns), told.forget_before(ns), locks.forget_before(ns), requests.forget_before(ns);
    }

    // Begins another op: the next explain()s belong to this op. begin_ns: begin of the op.
    void begin_op(std::int64_t begin_ns);
    // Adds the thread's waits in the interval, in order of time. The parts cover exactly the time not running by
    // SchedTimelines::split(). Adds nothing unless split() knows the whole interval.
    void explain(std::uint32_t host, std::int64_t tid, std::int64_t begin_ns, std::int64_t end_ns, std::uint32_t stage,
                 std::vector<WaitPart> &parts);

  private:
    struct On {  // the current thread of a chain
        std::int64_t tid;
        std::uint32_t comm, path, depth;
        bool certain;
        const On *from;                // nullptr: the op's own thread
        std::uint32_t last_cause = 0;  // the cause of the thread's current sleep
        HeldLock lock = {};            // the first lock slept for by a thread of the chain, up to this thread
        bool passed(std::int64_t other) const { return tid == other || (from && from->passed(other)); }
    };
    struct WholeWait {  // a whole wait of the current op; stages may cut the wait
        std::int64_t tid, begin_ns;
        std::uint64_t number;
        std::vector<WaitPart> parts;
    };
    using Parts = std::vector<WaitPart>;
    const WholeWait &whole(std::uint32_t host, std::int64_t tid, const ThreadSpell &, std::int64_t until_ns);
    void follow(const On &, std::int64_t begin_ns, std::int64_t end_ns);
    std::int64_t idle(const On &, std::int64_t begin_ns, std::int64_t end_ns);
    void sleep(const On &thread, const ThreadSpell &, std::int64_t begin_ns, std::int64_t end_ns);
    void by_request(const On &, const DoneRequest &, const ThreadSpell &, std::int64_t begin_ns, std::int64_t end_ns,
                    bool certain);
    void before_request(const On &, const DoneRequest &, std::int64_t begin_ns, std::int64_t end_ns);
    // The request whose completion woke the thread; nullptr: no known request.
    const DoneRequest *completion(const On &, const ThreadSpell &, bool &certain) const;
    std::uint32_t cause_of(const ThreadSpell &) const;
    HeldLock lock_of(const On &, const ThreadSpell &) const;
    static WaitPart part_of(const On &, WaitKind, std::int64_t begin_ns, std::int64_t end_ns);
    void add(const On &, WaitKind, std::int64_t begin_ns, std::int64_t end_ns, WaitDoubt = WaitDoubt::kNone);
    void add(WaitPart part);
    On next(const On &, std::int64_t tid, std::uint32_t comm, bool certain);
    std::uint32_t path_to(std::uint32_t path, std::uint32_t comm);

    const SchedTimelines &sched_;
    StringPool &strings_;
    FlatMap<std::uint64_t, std::uint32_t> paths_;  // (path, name of the next thread) → path
    std::uint64_t waits_ = 0;                      // so many have numbers
    std::int64_t floor_ns_ = kNoTime;
    std::vector<WholeWait> of_op_;
    // of the wait at hand
    std::uint32_t host_ = 0;
    std::uint64_t changes_left_ = 0;
    Parts found_;
};

}  // namespace opline
