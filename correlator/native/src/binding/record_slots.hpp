// SPDX-License-Identifier: MIT
// In which slots of an event class the fields of a whole request, a bio or a thread lie (tracepoints/request_event.h).
#pragma once
#include <array>
#include <cstdint>

#include "block/request_steps.hpp"
#include "event/event.hpp"
#include "identity/hosts.hpp"

namespace opline {

struct RecordSlots {
    enum Field : std::uint8_t {
        kRq,
        kBio,
        kSector,
        kBytes,
        kDev,
        kQueue,
        kGetRq,
        kInsert,
        kIssue,
        kMerge,
        kNamed,
        kComplete,
        kTid,
        kIssueTid,
        kRwbs,
        kBioRwbs,
        kCpu,
        kIssueCpu,
        kCompleteCpu,
        kFlags,
        kHwQueue,
        kError,
        kOldDev,
        kOldSector,
        kCgroup,
        kKernelTid,
        kPid,
        kFields
    };
    static constexpr std::array<const char *, kFields> kNames{
        "rq",           "bio",   "sector",   "bytes", "dev",       "queue",      "getrq",    "insert",     "issue",
        "merge",        "named", "complete", "tid",   "issue_tid", "rwbs",       "bio_rwbs", "cpu",        "issue_cpu",
        "complete_cpu", "flags", "hw_queue", "error", "old_dev",   "old_sector", "cgroup",   "kernel_tid", "pid"};
    static constexpr std::uint64_t kCoarse = 1, kFront = 16, kQueued = 64;  // of the flags
    static constexpr std::uint64_t kAbsent = 0xffffffff, kNoHwQueue = 0xffff;

    std::array<std::int32_t, kFields> slot;
    RecordSlots() { slot.fill(kNoSlot); }

    std::int64_t number(const Event &ev, Field field, std::int64_t otherwise) const {
        return number_in(ev, slot[field], otherwise);
    }
};

inline RequestRecord record_of(const RecordSlots &s, const Event &ev, const Hosts &hosts, std::uint32_t host) {
    using S = RecordSlots;
    RequestRecord r;
    auto word = [&](S::Field f) { return static_cast<std::uint64_t>(s.number(ev, f, 0)); };
    auto half = [&](S::Field f, std::int64_t otherwise) {
        return static_cast<std::uint32_t>(s.number(ev, f, otherwise));
    };
    const std::uint64_t flags = word(S::kFlags);
    auto time = [&](S::Field f) {
        const auto since = static_cast<std::uint64_t>(s.number(ev, f, S::kAbsent));
        if (since == S::kAbsent) return kNoTime;
        return hosts.time_since(host, ev.ts_ns, static_cast<std::int64_t>(flags & S::kCoarse ? since << 10 : since));
    };
    r.rq = word(S::kRq);
    r.bio = word(S::kBio);
    r.sector = word(S::kSector);
    r.bytes = half(S::kBytes, 0);
    r.dev = half(S::kDev, 0);
    r.queue_ns = flags & S::kQueued ? ev.ts_ns : time(S::kQueue);
    r.getrq_ns = time(S::kGetRq);
    r.insert_ns = time(S::kInsert);
    r.issue_ns = time(S::kIssue);
    r.merge_ns = time(S::kMerge);
    r.named_ns = time(S::kNamed);
    r.complete_ns = time(S::kComplete);
    r.tid = static_cast<std::int32_t>(s.number(ev, S::kTid, -1));
    r.issue_tid = static_cast<std::int32_t>(s.number(ev, S::kIssueTid, -1));
    r.cpu = half(S::kCpu, kNoCpu);
    r.issue_cpu = half(S::kIssueCpu, kNoCpu);
    r.complete_cpu = half(S::kCompleteCpu, kNoCpu);
    r.rwbs = half(S::kRwbs, 0);
    r.bio_rwbs = s.slot[S::kBioRwbs] == kNoSlot ? r.rwbs : half(S::kBioRwbs, 0);
    if (const auto queue = half(S::kHwQueue, S::kNoHwQueue); queue != S::kNoHwQueue) r.hw_queue = queue;
    r.error = static_cast<std::int32_t>(s.number(ev, S::kError, 0));
    r.front = flags & S::kFront;
    r.old_dev = half(S::kOldDev, 0);
    r.old_sector = word(S::kOldSector);
    r.cgroup_number = word(S::kCgroup);
    return r;
}

}  // namespace opline
