// SPDX-License-Identifier: MIT
// What each thread did when, from sched_switch, sched_waking and sched_wakeup: a bounded timeline per thread, and the
// time of an interval split by it.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/flat_map.hpp"
#include "event/event.hpp"
#include "op/op.hpp"

namespace opline {

// kIdle: a kernel thread without work. kStopped: by a signal or a tracer. kGone: unknown from here on (for example
// after the exit).
enum class ThreadRun : std::uint8_t { kOnCpu, kRunnable, kUninterruptible, kSleeping, kIdle, kStopped, kGone };

// kWaking: in the waker's context. kWakeup: the thread is on a run queue, perhaps by another CPU. kNew: the first
// wake-up.
enum class Wake : std::uint8_t { kWaking, kWakeup, kNew };

// The context of a wake-up. kInterrupt: neither timer nor network.
enum class WokenFrom : std::uint8_t { kNotTold, kThread, kInterrupt, kTimer, kNetwork };

// The waker of a thread.
constexpr std::uint16_t kNoWakerCpu = 0xffff;
struct Waker {
    std::int32_t tid = -1;                      // the CPU's thread, perhaps only interrupted; -1: unknown
    std::uint32_t comm = 0;                     // pool id; 0: unknown
    std::int32_t stack = -1, waker_stack = -1;  // kernel stacks of the sleeper and the waker, by number; -1: none
    std::uint16_t cpu = kNoWakerCpu;            // kNoWakerCpu: not told
    WokenFrom from = WokenFrom::kNotTold;
};

// A time with one state of a thread.
struct ThreadSpell {
    static constexpr std::int64_t kGoesOn = std::numeric_limits<std::int64_t>::max();
    std::int64_t begin_ns, end_ns;  // kGoesOn: the end is unknown
    ThreadRun run;
    bool woken;              // ended by a wake-up:
    Waker by;                // the waker
    std::uint32_t next_cpu;  // the CPU where the thread continued; kNoCpu: none, or unknown
};

// A thread's state, as in the tables: sleep is blocked, on I/O or otherwise.
enum class StateKind : std::uint8_t { kOnCpu, kRunnable, kBlockedIo, kBlocked };

// A part of an interval with one state of the thread. Never empty.
struct StatePart {
    std::int64_t begin_ns, end_ns;
    std::uint32_t stage;  // stage of the op, from 0
    StateKind state;
    std::int32_t woken_by_tid = -1;   // the waker at the begin of the part; -1: none
    std::uint32_t woken_by_comm = 0;  // pool id; 0: unknown
};

// The states of a thread in an interval. The four times sum to the interval; known: the timeline covers all of the
// interval.
struct StateSplit {
    bool known = false;
    std::int64_t tid = -1;  // the thread
    std::int64_t on_cpu_ns = 0, runnable_ns = 0, blocked_io_ns = 0, blocked_ns = 0;
    std::int64_t woken_by_tid = -1;   // of the last wake-up in the interval; -1: none
    std::uint32_t woken_by_comm = 0;  // pool id; 0: unknown
};

class SchedTimelines {
  public:
    // prev_state as LTTng writes it: see sched/sched.cpp. `cpu`: kNoCpu if the trace has the switches of only some
    // threads. On a CPU each switch begins with the last switch's thread; otherwise a switch is missing.
    void on_switch(std::uint32_t host, std::uint32_t cpu, std::int64_t ts_ns, std::int64_t prev_tid,
                   std::int64_t prev_state, std::int64_t next_tid);
    void on_wake(std::uint32_t host, std::int64_t ts_ns, Wake kind, std::int64_t tid, const Waker &);
    // Events are missing up to until_ns, perhaps later than now: timelines begin again afterwards.
    void lost(std::int64_t until_ns);
    // Events are missing from there on, for good.
    void lost_from(std::int64_t from_ns) { ends_ns_ = std::min(ends_ns_, from_ns); }
    // Missing switches and wake-ups, shown by other events: a lower bound.
    std::uint64_t missing() const { return missing_; }
    // No later question is about an earlier time.
    void forget_before(std::int64_t ns);
    // Wake-ups and switches since the last forget_before(): tells when another call is worth the time.
    std::uint64_t changes() const { return changes_; }

    // Sleep counts as blocked on I/O if one of the requests was between Q and C; uninterruptible sleep always does.
    // Adds the parts of `stage` to `parts` (if given), in time order; none if a part of the interval is unknown.
    StateSplit split(std::uint32_t host, std::int64_t tid, std::int64_t begin_ns, std::int64_t end_ns,
                     const std::vector<RequestCut> &requests, std::uint32_t stage, std::vector<StatePart> *parts) const;
    // The timeline of the thread has no change since `ns`, or is unknown since: later events are not in the timeline
    // yet.
    bool ends_before(std::uint32_t host, std::int64_t tid, std::int64_t ns) const;
    // The thread is unknown from ts_ns on; kNoTime: since the last change.
    void gone(std::uint32_t host, std::int64_t tid, std::int64_t ts_ns);
    // Something is known of the thread.
    bool knows(std::uint32_t host, std::int64_t tid) const;
    // The spells of the thread in the interval, in order of time, from the timeline's first change to its end. The
    // first and the last spell may extend beyond the interval. Ends early if `each` returns false.
    template <class Each>  // bool(const ThreadSpell &)
    void each_spell(std::uint32_t host, std::int64_t tid, std::int64_t begin_ns, std::int64_t end_ns, Each each) const {
        const Timeline *t = find(host, tid);
        if (!t || !wakes_seen() || begin_ns >= end_ns) return;
        end_ns = std::min(end_ns, ends_ns_);
        std::size_t i = t->after(begin_ns);
        if (i > t->first) --i;
        for (; i < t->changes.size() && t->changes[i].ts_ns < end_ns; ++i)
            if (!each(spell_at(*t, i))) return;
    }

  private:
    struct Change {
        std::int64_t ts_ns;
        Waker by;           // of a wake-up
        std::uint16_t cpu;  // the CPU that the thread was put on; kNoWakerCpu: none, or unknown
        ThreadRun run;
        bool wakeup;
    };
    struct Timeline {
        std::vector<Change> changes;
        std::size_t first = 0;                // changes before are forgotten
        Waker by;                             // the waker of a sched_waking since the last run
        bool waking = false, wakeup = false;  // seen since the last run; the first wake-up counts as both
        bool woken() const { return waking || wakeup; }
        mutable std::size_t asked = 0;  // where after() was
        bool sleeps() const {
            return !changes.empty() && changes.back().run >= ThreadRun::kUninterruptible &&
                   changes.back().run <= ThreadRun::kStopped;
        }
        void forget(std::size_t until);
        std::size_t after(std::int64_t ns) const;
    };
    bool usable(std::int64_t ts_ns, std::int64_t tid) const {
        return tid > 0 && ts_ns > begins_ns_ && ts_ns <= ends_ns_;
    }
    // Without wake-ups, a wait for a CPU looks like sleep.
    bool wakes_seen() const { return wakings_seen_ || wakeups_seen_; }
    void add(Timeline &, Change);
    struct Running {
        std::int64_t tid = -1, since_ns = kNoTime;
    };
    void missed(std::uint32_t host, const Running &, std::int64_t prev_tid);
    const Timeline *find(std::uint32_t host, std::int64_t tid) const;
    static ThreadSpell spell_at(const Timeline &, std::size_t);

    FlatMap<std::uint64_t, Timeline> threads_;
    FlatMap<std::uint64_t, Running> running_;  // by host and CPU
    std::int64_t begins_ns_ = kNoTime, ends_ns_ = std::numeric_limits<std::int64_t>::max();
    bool wakings_seen_ = false, wakeups_seen_ = false;
    std::uint64_t changes_ = 0, missing_ = 0;
};

}  // namespace opline
