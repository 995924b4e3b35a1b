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
    kQueue,       // the request was queued, not issued yet
    kCompletion,  // the request was done, and its waiting thread not woken yet
    kWork,        // another thread ran
    kCpu,         // a thread waited for a CPU
    kThread,      // another thread did something not recorded
    kStopped,     // a signal had stopped the thread
    kTimer,       // a timer ended the wait
    kNetwork,     // a message from the network ended the wait
    kInterrupt,   // an interrupt of no known request ended the wait
    kUnknown
};
constexpr std::array<std::string_view, 11> kWaitKinds{"device",  "queue", "completion", "work",      "cpu",    "thread",
                                                      "stopped", "timer", "network",    "interrupt", "unknown"};

// Why nothing is known of a part.
enum class WaitDoubt : std::uint8_t {
    kNone,
    kNoWaking,       // the trace has no wake-up of the thread
    kBeforeRequest,  // the awaited request did not exist yet, and its maker is unknown
    kCycle,          // the waker had waited for this thread
    kTooLong         // more threads in the chain, or more changes, than the limit
};
constexpr std::array<std::string_view, 5> kWaitDoubts{"", "no wake-up", "before the request", "cycle", "too long"};

struct WaitPart {
    std::int64_t begin_ns = 0, end_ns = 0;
    std::int64_t ns = 0;                  // length; for a summed part, the sum of lengths
    std::uint32_t parts = 1;              // so many
    std::uint64_t wait = 0, request = 0;  // 0: no request
    // stage of the op, from 0; number of threads between the op's thread and this thread
    std::uint32_t stage = 0, depth = 0;
    std::uint32_t comm = 0, path = 0;  // pool ids; path: the names of the threads on the way, 0: none
    std::int32_t tid = -1;  // the thread that queued the request, ran, waited for the CPU, or stopped it; -1: unknown
    std::int32_t stack = -1, waker_stack = -1;  // Waker's, of the op's own thread
    std::uint32_t cause = 0;        // pool id: the cause of the sleep of the op's own thread; 0: unknown, or runnable
    std::uint32_t last_cause = 0;   // the cause of the sleep of the path's last thread; 0: unknown, or awake
    std::int32_t instead_tid = -1;  // the thread that ran meanwhile
    std::uint32_t instead_comm = 0;
    HeldLock lock;  // the lock of the first thread that slept for a lock; address 0: no lock
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
