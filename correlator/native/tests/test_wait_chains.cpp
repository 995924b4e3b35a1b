// SPDX-License-Identifier: MIT
// What threads waited for, of states and completions that are fed by hand.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "waits/wait_chains.hpp"

using namespace opline;

namespace {

constexpr std::uint32_t kHost = 1, kDisk = 8u << 20, kLoop = 7u << 20;
constexpr std::int64_t kSleeps = 1, kStopped = 4, kIdle = 128, kPreempted = 256;

// Times in microseconds. Thread 10 is the op's, on CPU 0; nobody is on a CPU at first.
struct Machine {
    Machine() { sched.on_wake(kHost, 1, Wake::kWaking, 9, {}); }
    void on(int us, std::uint32_t cpu, std::int64_t prev, std::int64_t prev_state, std::int64_t next) {
        sched.on_switch(kHost, cpu, us * 1000, prev, prev_state, next);
        chains.runs.on_switch(kHost, cpu, us * 1000, next, name(next));
    }
    void wake(int us, std::int64_t tid, std::int64_t by, std::uint16_t cpu, WokenFrom from = WokenFrom::kNotTold,
              std::int32_t stack = -1, std::int32_t waker_stack = -1) {
        sched.on_wake(kHost, us * 1000, Wake::kWaking, tid,
                      {static_cast<std::int32_t>(by), name(by), stack, waker_stack, cpu, from});
    }
    void done(int us, std::uint32_t cpu, std::uint64_t request, std::int32_t tid, int queue_us, int issue_us,
              std::uint32_t dev = kDisk, int flushed_us = 0) {
        DoneRequest r;
        r.request = request;
        r.queue_ns = queue_us * 1000;
        r.getrq_ns = queue_us * 1000 + 1000;
        if (flushed_us != 0) r.preflush_ns = flushed_us * 1000;
        r.issue_ns = issue_us * 1000;
        r.done_ns = us * 1000;
        r.dev = dev;
        r.queue_tid = tid;
        r.queue_comm = name(tid);
        chains.requests.add(kHost, cpu, r);
    }
    // "KIND FROM..TO of TID by PATH", one after the other.
    std::string told(int begin_us, int end_us, int op_begin_us = 0) {
        std::vector<WaitPart> parts;
        chains.begin_op(op_begin_us * 1000);
        chains.explain(kHost, 10, begin_us * 1000, end_us * 1000, 0, parts);
        std::string out;
        for (const auto &p : parts) {
            CHECK(p.ns == p.end_ns - p.begin_ns);
            out += std::string(out.empty() ? "" : "; ") + std::string(kWaitKinds[static_cast<std::size_t>(p.kind)]) +
                   " " + std::to_string(p.begin_ns / 1000) + ".." + std::to_string(p.end_ns / 1000);
            if (p.kind == WaitKind::kUnknown) out += " " + std::string(kWaitDoubts[static_cast<std::size_t>(p.doubt)]);
            else if (p.request != 0) out += " of request " + std::to_string(p.request);
            else if (p.depth > 0 || p.kind == WaitKind::kStopped) out += " of " + std::to_string(p.tid);
            if (p.instead_tid > 0) out += " while " + std::to_string(p.instead_tid) + " ran";
            if (p.path != 0 && p.depth > 0) out += " (" + strings.at(p.path) + ")";
            if (p.cause != 0) out += ", " + strings.at(p.cause);
            if (p.last_cause != 0 && p.last_cause != p.cause) out += " .. " + strings.at(p.last_cause);
            if (p.lock.address != 0)
                out += " for " + std::string(kLockKinds[static_cast<std::size_t>(p.lock.kind)]) + " " +
                       std::to_string(p.lock.address) + " of " + std::to_string(p.lock.holder_tid);
            if (!p.certain) out += "?";
        }
        return out;
    }
    std::uint32_t name(std::int64_t tid) { return tid > 0 ? strings.intern("t" + std::to_string(tid)) : 0; }

    StringPool strings;
    SchedTimelines sched;
    WaitChains chains{sched, strings};
};

}  // namespace

TEST_CASE("a wait is for the request whose completion woke the thread") {
    Machine m;
    m.on(10, 0, 0, 0, 10);
    m.on(30, 0, 10, kSleeps, 0);
    m.done(80, 0, 5, 10, 20, 40);
    m.wake(82, 10, 0, 0);
    m.on(85, 0, 0, 0, 10);
    CHECK(m.told(10, 90) ==
          "queue 30..40 of request 5; device 40..80 of request 5; completion 80..82 of request 5; cpu 82..85");
    // A stage sees its part of it.
    CHECK(m.told(50, 81) == "device 50..80 of request 5; completion 80..81 of request 5");
    // Of the sleep nothing counts that was before the op.
    CHECK(m.told(60, 80, 60) == "device 60..80 of request 5");
}

TEST_CASE("the flush before a write is the device's time") {
    Machine m;
    m.on(10, 0, 0, 0, 10);
    m.on(30, 0, 10, kSleeps, 0);
    m.done(80, 0, 5, 10, 20, 60, kDisk, 50);
    m.wake(80, 10, 0, 0);
    m.on(80, 0, 0, 0, 10);
    CHECK(m.told(10, 80) == "device 30..50 of request 5; queue 50..60 of request 5; device 60..80 of request 5");
}

TEST_CASE("a completion before the last switch of the CPU woke somebody else") {
    Machine m;
    m.on(5, 1, 0, 0, 9);
    m.on(10, 0, 0, 0, 10);
    m.on(20, 0, 10, kSleeps, 0);
    m.wake(21, 11, 0, 1);
    m.on(30, 1, 9, kSleeps, 11);
    m.done(40, 1, 5, 12, 15, 25);
    m.on(45, 1, 11, kPreempted, 13);
    m.on(50, 1, 13, kPreempted, 11);
    m.wake(60, 10, 11, 1);
    m.on(62, 0, 0, 0, 10);
    // What the waker did before it was first seen is not known.
    CHECK(m.told(10, 62) ==
          "thread 20..30 of 11 (t11)?; work 30..45 of 11 (t11)?; cpu 45..50 of 11 while 13 ran "
          "(t11)?; work 50..60 of 11 (t11)?; cpu 60..62");
}

TEST_CASE("the first lock that a thread of the path slept for is told, with its holder") {
    Machine m;
    m.on(5, 1, 0, 0, 11);
    m.on(10, 0, 0, 0, 10);
    m.on(20, 0, 10, kSleeps, 0);
    m.on(25, 1, 11, kSleeps, 0);
    m.wake(40, 11, 12, 1, WokenFrom::kThread);
    m.chains.locks.add(kHost, 11, 25'000, {7, 12, m.name(12), LockKind::kMutex});
    m.on(42, 1, 0, 0, 11);
    m.wake(60, 10, 11, 1, WokenFrom::kThread);
    const std::string rest =
        "thread 25..40 of 12 (t11 → t12) for mutex 7 of 12; cpu 40..42 of 11 (t11); "
        "work 42..60 of 11 (t11)";
    m.chains.locks.add(kHost, 10, 19'000, {9, 13, m.name(13), LockKind::kRwsemRead});  // of another sleep
    SUBCASE("of a deeper one") {
        m.on(62, 0, 0, 0, 10);
        CHECK(m.told(10, 62) == "work 20..25 of 11 (t11); " + rest + "; cpu 60..62");
    }
    SUBCASE("of the op's own thread; who wakes it from a futex held that") {
        m.chains.locks.add(kHost, 10, 20'000, {8, -1, 0, LockKind::kFutex});
        m.on(62, 0, 0, 0, 10);
        CHECK(m.told(10, 62) ==
              "work 20..25 of 11 (t11) for futex 8 of 11; thread 25..40 of 12 (t11 → t12) for futex 8 of 11; "
              "cpu 40..42 of 11 (t11) for futex 8 of 11; work 42..60 of 11 (t11) for futex 8 of 11; cpu 60..62");
    }
    SUBCASE("what is long past is forgotten") {
        m.chains.locks.forget_before(26'000);
        CHECK(m.chains.locks.of(kHost, 11, 25'000) != nullptr);  // it may sleep on
        m.chains.locks.add(kHost, 11, 27'000, {7, 12, m.name(12), LockKind::kMutex});
        m.chains.locks.forget_before(28'000);
        CHECK(m.chains.locks.of(kHost, 11, 25'000) == nullptr);
        CHECK(m.chains.locks.of(kHost, 11, 27'000) != nullptr);
    }
}

TEST_CASE("where the events tell the context it decides") {
    Machine m;
    m.on(5, 1, 0, 0, 11);
    m.on(10, 0, 0, 0, 10);
    m.on(20, 0, 10, kSleeps, 0);
    m.done(40, 1, 5, 12, 15, 25);
    SUBCASE("an interrupt met the thread that ran") {
        m.wake(41, 10, 11, 1, WokenFrom::kInterrupt);
        m.on(42, 0, 0, 0, 10);
        CHECK(m.told(20, 41) ==
              "queue 20..25 of request 5; device 25..40 of request 5; completion 40..41 of request 5");
    }
    SUBCASE("the thread did it") {
        m.wake(41, 10, 11, 1, WokenFrom::kThread);
        m.on(42, 0, 0, 0, 10);
        CHECK(m.told(20, 41) == "work 20..41 of 11 (t11)");
    }
    SUBCASE("a timer") {
        m.wake(41, 10, 11, 1, WokenFrom::kTimer);
        m.on(42, 0, 0, 0, 10);
        CHECK(m.told(20, 41) == "timer 20..41");
    }
    SUBCASE("an interrupt without a completion") {
        m.wake(900, 10, 11, 1, WokenFrom::kInterrupt);
        m.on(901, 0, 0, 0, 10);
        CHECK(m.told(20, 900) == "interrupt 20..900");
    }
}

TEST_CASE("a chain goes on from waker to waker, and before a request to who queued it") {
    Machine m;
    m.on(5, 1, 0, 0, 11);
    m.on(6, 2, 0, 0, 12);
    m.on(10, 0, 0, 0, 10);
    m.on(20, 0, 10, kSleeps, 0);  // waits for 11,
    m.on(25, 1, 11, kSleeps, 0);  // which waits for a request that 12 queues at 40
    m.done(70, 1, 5, 12, 40, 50);
    m.wake(71, 11, 0, 1);
    m.on(72, 1, 0, 0, 11);
    m.wake(80, 10, 11, 1, WokenFrom::kThread);
    m.on(81, 0, 0, 0, 10);
    CHECK(m.told(20, 80) ==
          "work 20..25 of 11 (t11); work 25..40 of 12 (t11 → t12); queue 40..50 of request 5 (t11); "
          "device 50..70 of request 5 (t11); completion 70..71 of request 5 (t11); "
          "cpu 71..72 of 11 (t11); work 72..80 of 11 (t11)");
}

TEST_CASE("a loop device's request is the work of the thread that completes it") {
    Machine m;
    m.on(5, 1, 0, 0, 11);
    m.on(10, 0, 0, 0, 10);
    m.on(30, 0, 10, kSleeps, 0);
    m.on(40, 1, 11, kPreempted, 13);
    m.on(60, 1, 13, kSleeps, 11);
    m.done(80, 1, 5, 10, 20, 35, kLoop);
    m.wake(81, 10, 11, 1, WokenFrom::kThread);
    m.on(82, 0, 0, 0, 10);
    CHECK(m.told(30, 81) ==
          "queue 30..35 of request 5; work 35..40 of 11 (t11); cpu 40..60 of 11 while 13 ran (t11); "
          "work 60..80 of 11 (t11); completion 80..81 of request 5");
}

TEST_CASE("stopped, a circle, and a thread that nobody has seen") {
    Machine m;
    m.on(10, 0, 0, 0, 10);
    m.on(20, 0, 10, kStopped, 0);
    m.wake(50, 10, 11, 1, WokenFrom::kThread);
    m.on(51, 0, 0, 0, 10);
    CHECK(m.told(20, 50) == "stopped 20..50 of 11 (t11)");
    m.on(60, 0, 10, kSleeps, 0);
    m.wake(70, 10, 12, 1, WokenFrom::kThread);
    m.on(71, 0, 0, 0, 10);
    CHECK(m.told(60, 70) == "thread 60..70 of 12 (t12)");
    m.on(75, 2, 0, 0, 13);
    m.on(80, 0, 10, kSleeps, 0);
    m.on(81, 2, 13, kSleeps, 0);
    m.wake(90, 13, 10, 1, WokenFrom::kThread);
    m.on(91, 2, 0, 0, 13);
    m.wake(95, 10, 13, 2, WokenFrom::kThread);
    m.on(96, 0, 0, 0, 10);
    CHECK(m.told(80, 95) ==
          "work 80..81 of 13 (t13); unknown 81..90 cycle (t13); cpu 90..91 of 13 (t13); "
          "work 91..95 of 13 (t13)");
}

TEST_CASE("stacks name what the op's thread and the last one of the path slept for") {
    Machine m;
    m.chains.causes.know({1, "journal commit", false, ""}, m.strings);
    m.chains.causes.know({2, "idle worker", true, ""}, m.strings);
    m.chains.causes.know({3, "", false, "throttle"}, m.strings);
    m.on(5, 1, 0, 0, 11);
    m.on(10, 0, 0, 0, 10);
    m.on(20, 0, 10, kSleeps, 0);
    m.on(25, 1, 11, kSleeps, 0);
    std::string last;
    SUBCASE("the end of a vague sleep says more") {
        m.wake(70, 11, 0, 1, WokenFrom::kTimer, 2, 3);
        last = " .. throttle";
    }
    SUBCASE("an unknown stack of the waker says nothing") {
        m.wake(70, 11, 0, 1, WokenFrom::kTimer, 2, 9);
        last = " .. idle worker";
    }
    SUBCASE("two unknown stacks say nothing") { m.wake(70, 11, 0, 1, WokenFrom::kTimer, 8, 9); }
    m.on(72, 1, 0, 0, 11);
    m.wake(80, 10, 11, 1, WokenFrom::kThread, 1, -1);
    m.on(81, 0, 0, 0, 10);
    CHECK(m.told(20, 81) == "work 20..25 of 11 (t11), journal commit; timer 25..70 of 11 (t11), journal commit" + last +
                                "; cpu 70..72 of 11 (t11), journal commit; work 72..80 of 11 (t11), journal commit; "
                                "cpu 80..81");
}

TEST_CASE("a sleep without a wake-up is not known, and sums all the same") {
    Machine m;
    m.on(10, 0, 0, 0, 10);
    m.on(20, 0, 10, kSleeps, 0);
    CHECK(m.told(10, 50) == "unknown 20..50 no wake-up");
    CHECK(m.told(30, 60) == "unknown 30..60 no wake-up");
}

TEST_CASE("what a worker did before it was idle last was for others: the wait is for who gave the work") {
    Machine m;
    m.on(5, 1, 0, 0, 11);
    m.on(10, 0, 0, 0, 10);
    m.on(20, 0, 10, kSleeps, 0);
    std::int64_t state = kIdle;
    std::string before;
    SUBCASE("idle") { before = "timer 20..70 of 11 (t11)"; }
    SUBCASE("asleep for other things") {
        state = kSleeps;
        before =
            "work 20..25 of 11 (t11); interrupt 25..40 of 11 (t11); cpu 40..41 of 11 (t11); "
            "work 41..50 of 11 (t11); timer 50..70 of 11 (t11)";
    }
    m.on(25, 1, 11, state, 0);
    m.wake(40, 11, 0, 1, WokenFrom::kInterrupt);
    m.on(41, 1, 0, 0, 11);
    m.on(50, 1, 11, state, 0);
    m.wake(70, 11, 0, 1, WokenFrom::kTimer);
    m.on(72, 1, 0, 0, 11);
    m.wake(80, 10, 11, 1, WokenFrom::kThread);
    m.on(81, 0, 0, 0, 10);
    CHECK(m.told(20, 81) == before + "; cpu 70..72 of 11 (t11); work 72..80 of 11 (t11); cpu 80..81");
}
