// SPDX-License-Identifier: MIT
// What a part of a wait was spent on.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

#include "sched/told_locks.hpp"

namespace opline {

enum class WaitKind : std::uint8_t {
    kDevice,      // a block request was at the device
    kQueue,       // it was queued, and not issued
    kCompletion,  // it was done, the thread that it let go on not woken yet
    kWork,        // another thread ran
    kCpu,         // a thread waited for a CPU
    kThread,      // another thread did what is not recorded
    kStopped,     // a signal had stopped the thread
    kTimer,       // a timer ended it
    kNetwork,     // a message from the network ended it
    kInterrupt,   // an interrupt ended it that is no request's, and of which no more is known
    kUnknown
};
constexpr std::array<std::string_view, 11> kWaitKinds{"device",  "queue", "completion", "work",      "cpu",    "thread",
                                                      "stopped", "timer", "network",    "interrupt", "unknown"};

// Why nothing is known of a part.
enum class WaitDoubt : std::uint8_t {
    kNone,
    kNoWaking,       // the trace has no wake-up of the thread
    kBeforeRequest,  // the request that ended it did not exist yet, and who made it is not known
    kCycle,          // the waker had waited for this thread
    kTooLong         // more threads after one another, or more changes, than are followed
};
constexpr std::array<std::string_view, 5> kWaitDoubts{"", "no wake-up", "before the request", "cycle", "too long"};

struct WaitPart {
    std::int64_t begin_ns = 0, end_ns = 0;
    std::int64_t ns = 0;                  // its length; the sum of those that one stands for
    std::uint32_t parts = 1;              // so many
    std::uint64_t wait = 0, request = 0;  // 0: no request
    std::uint32_t stage = 0, depth = 0;   // of its op, from 0; how many threads away from the op's own
    std::uint32_t comm = 0, path = 0;     // pool ids; path: the names of the threads on the way, 0: none
    std::int32_t tid = -1;                // who queued the request, ran, waited for the CPU, stopped it; -1: not known
    std::int32_t stack = -1, waker_stack = -1;  // Waker's, of the op's own thread
    std::uint32_t cause = 0;                    // pool id: what the op's own thread slept in; 0: not known, or runnable
    std::uint32_t last_cause = 0;               // what the last thread of the path slept in; 0: also where it is awake
    std::int32_t instead_tid = -1;              // who ran meanwhile
    std::uint32_t instead_comm = 0;
    HeldLock lock;  // for which the first thread slept that slept for one; address 0: none did
    WaitKind kind = WaitKind::kUnknown;
    WaitDoubt doubt = WaitDoubt::kNone;
    bool certain = true;  // no waker may have been a bystander of an interrupt

    bool goes_on(const WaitPart &o) const {
        return end_ns == o.begin_ns && wait == o.wait && request == o.request && stage == o.stage && path == o.path &&
               tid == o.tid && instead_tid == o.instead_tid && kind == o.kind && doubt == o.doubt && cause == o.cause &&
               last_cause == o.last_cause && lock.address == o.lock.address && certain == o.certain;
    }
};

}  // namespace opline
