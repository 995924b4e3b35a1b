// SPDX-License-Identifier: MIT
// Where an event's class says which thread it is of. Recorders differ: contexts of LTTng, payload of collectors.
#pragma once
#include <cstdint>
#include <string_view>

#include "event/event.hpp"

namespace opline {

// Providers of collectors, by the begin of an event's name.
constexpr std::string_view kBpfCalls = "syscall:";  // system calls from BPF, with LTTng's names behind the provider's
constexpr std::string_view kBpfBlock = "block:";
constexpr std::string_view kBpfSched = "sched:";
// In older recordings the hits of probes in Ceph came through a provider of their own, with time and thread as payload.
constexpr std::string_view kOldProbes = "cephprobe:";
// What the shim for Ceph writes by itself comes as `cephshim`, what its collector sends on as `cephring`, with time and
// thread as payload.
constexpr std::string_view kShim = "cephshim:", kRings = "cephring:";

inline bool starts_with(std::string_view s, std::string_view prefix) { return s.substr(0, prefix.size()) == prefix; }

// Indices of ClassDecl::fields; kNoSlot: the class does not say it.
struct ThreadFields {
    std::int32_t tid = kNoSlot, pid = kNoSlot, comm = kNoSlot;
};

ThreadFields thread_fields(const ClassDecl &);

}  // namespace opline
