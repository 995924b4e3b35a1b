// SPDX-License-Identifier: MIT
// Which lock a thread slept for, where the trace says so, and which thread held that lock.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

#include "sched/told_before.hpp"

namespace opline {

enum class LockKind : std::uint8_t {
    kFutex,
    kMutex,
    kRwsemRead,
    kRwsemWrite,
    kPercpuRwsemRead,
    kPercpuRwsemWrite,
    kRtMutex,
    kOther
};
constexpr std::array<std::string_view, 8> kLockKinds{"futex",
                                                     "mutex",
                                                     "rwsem (to read)",
                                                     "rwsem (to write)",
                                                     "per-CPU rwsem (to read)",
                                                     "per-CPU rwsem (to write)",
                                                     "rt_mutex",
                                                     "other lock"};

// Of the field lock_flags (tracepoints/state_tp.h): LCB_F_* of the kernel's include/trace/events/lock.h, and a futex.
inline LockKind lock_kind(std::int64_t flags) {
    constexpr std::int64_t kReads = 2, kWrites = 4, kRt = 8, kPercpu = 16, kMutex = 32, kFutex = 0x8000;
    if (flags & kFutex) return LockKind::kFutex;
    if (flags & kMutex) return LockKind::kMutex;
    if (flags & kPercpu) return flags & kWrites ? LockKind::kPercpuRwsemWrite : LockKind::kPercpuRwsemRead;
    if (flags & kReads) return LockKind::kRwsemRead;
    if (flags & kWrites) return LockKind::kRwsemWrite;
    return flags & kRt ? LockKind::kRtMutex : LockKind::kOther;
}

struct HeldLock {
    std::uint64_t address = 0;     // of a futex: in its process; else in the kernel
    std::int32_t holder_tid = -1;  // -1: not known
    std::uint32_t holder_comm = 0;
    LockKind kind = LockKind::kOther;
};

class ToldLocks {
  public:
    // The thread slept since `off_ns` for the lock.
    void add(std::uint32_t host, std::int64_t tid, std::int64_t off_ns, const HeldLock &lock) {
        told_.add(host, tid, off_ns, lock);
    }
    // The lock that the thread slept for since off_ns; nullptr: no known lock.
    const HeldLock *of(std::uint32_t host, std::int64_t tid, std::int64_t off_ns) const {
        const auto *last = told_.last(host, tid, off_ns);
        return last && last->at_ns == off_ns ? &last->what : nullptr;
    }
    void forget_before(std::int64_t ns) { told_.forget_before(ns); }

  private:
    ToldBefore<HeldLock> told_;
};

}  // namespace opline
