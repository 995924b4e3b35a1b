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

// kIdle: a kernel thread that waits for work. kStopped: by a signal, or by who traces it. kGone: not known from here on
// (it exited).
enum class ThreadRun : std::uint8_t { kOnCpu, kRunnable, kUninterruptible, kSleeping, kIdle, kStopped, kGone };

// kWaking: in the waker's context. kWakeup: the thread is on a run queue, maybe another CPU's doing. kNew: its first.
enum class Wake : std::uint8_t { kWaking, kWakeup, kNew };

// In which context a wake-up came. kInterrupt: neither a timer's nor the network's.
enum class WokenFrom : std::uint8_t { kNotTold, kThread, kInterrupt, kTimer, kNetwork };

// Who woke a thread.
constexpr std::uint16_t kNoWakerCpu = 0xffff;
struct Waker {
    std::int32_t tid = -1;                      // the thread that the CPU ran, perhaps only interrupted; -1: not known
    std::uint32_t comm = 0;                     // pool id; 0: unknown
    std::int32_t stack = -1, waker_stack = -1;  // kernel stacks of the sleeper and the waker, by number; -1: none
    std::uint16_t cpu = kNoWakerCpu;            // kNoWakerCpu: not told
    WokenFrom from = WokenFrom::kNotTold;
};

// A time in which a thread did one thing.
struct ThreadSpell {
    static constexpr std::int64_t kGoesOn = std::numeric_limits<std::int64_t>::max();
    std::int64_t begin_ns, end_ns;  // kGoesOn: nothing is known of its end
    ThreadRun run;
    bool woken;              // a wake-up ended it:
    Waker by;                // the waker
    std::uint32_t next_cpu;  // on which it went on; kNoCpu: it did not, or the trace does not say
};

// What a thread did, as the tables say it: sleep is blocked, on I/O or otherwise.
enum class StateKind : std::uint8_t { kOnCpu, kRunnable, kBlockedIo, kBlocked };

// A part of an interval in which the thread did one thing. It is not empty.
struct StatePart {
    std::int64_t begin_ns, end_ns;
    std::uint32_t stage;  // of its op, from 0
    StateKind state;
    std::int32_t woken_by_tid = -1;   // whose wake-up began it; -1: none
    std::uint32_t woken_by_comm = 0;  // pool id; 0: unknown
};

// How a thread spent an interval. The four sum to it; known: the timeline covers all of it.
struct StateSplit {
    bool known = false;
    std::int64_t tid = -1;  // whose
    std::int64_t on_cpu_ns = 0, runnable_ns = 0, blocked_io_ns = 0, blocked_ns = 0;
    std::int64_t woken_by_tid = -1;   // by the last wake-up in it; -1: none
    std::uint32_t woken_by_comm = 0;  // pool id; 0: unknown
};

class SchedTimelines {
  public:
    // prev_state as LTTng writes it: see sched/sched.cpp. `cpu`: kNoCpu where only some threads' switches are known. On
    // a CPU each switch takes up where the one before left off: where it does not, one is missing.
    void on_switch(std::uint32_t host, std::uint32_t cpu, std::int64_t ts_ns, std::int64_t prev_tid,
                   std::int64_t prev_state, std::int64_t next_tid);
    void on_wake(std::uint32_t host, std::int64_t ts_ns, Wake kind, std::int64_t tid, const Waker &);
    // Events are missing up to until_ns, which may be later than now: timelines begin anew after it.
    void lost(std::int64_t until_ns);
    // Events are missing from there on, for good.
    void lost_from(std::int64_t from_ns) { ends_ns_ = std::min(ends_ns_, from_ns); }
    // Switches and wake-ups that others show to be missing, at least.
    std::uint64_t missing() const { return missing_; }
    // Nobody asks about what was before.
    void forget_before(std::int64_t ns);
    // Wake-ups and switches since the last forget_before(): a measure of when it is worth while.
    std::uint64_t changes() const { return changes_; }

    // Sleep counts as blocked on I/O where one of the requests was between Q and C, uninterruptible sleep always. Adds
    // the parts to `parts`, if there is one: they are of `stage`, in time order, none where all is not known.
    StateSplit split(std::uint32_t host, std::int64_t tid, std::int64_t begin_ns, std::int64_t end_ns,
                     const std::vector<RequestCut> &requests, std::uint32_t stage, std::vector<StatePart> *parts) const;
    // The timeline of the thread has nothing since then, or says so: what is fed of it next is not in it yet.
    bool ends_before(std::uint32_t host, std::int64_t tid, std::int64_t ns) const;
    // Nothing is known of the thread from there on; kNoTime: since its last change.
    void gone(std::uint32_t host, std::int64_t tid, std::int64_t ts_ns);
    // Something is known of the thread.
    bool knows(std::uint32_t host, std::int64_t tid) const;
    // What the thread did in the interval, in order of time: as far as the timeline goes, from its first change on. The
    // first and the last spell may reach beyond it. Ends early where `each` gives false.
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
        std::uint16_t cpu;  // where it was put on one; kNoWakerCpu: it was not, or the trace does not say
        ThreadRun run;
        bool wakeup;
    };
    struct Timeline {
        std::vector<Change> changes;
        std::size_t first = 0;                // those before it are forgotten
        Waker by;                             // of a sched_waking since it last ran
        bool waking = false, wakeup = false;  // there was one since it last ran; its first is both
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
    // Without them waiting for a CPU looks like sleep.
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
