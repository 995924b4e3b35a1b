// SPDX-License-Identifier: MIT
// Providers of collectors, by the begin of an event's name.
#pragma once
#include <string_view>

namespace opline {

constexpr std::string_view kBpfCalls = "syscall:";  // system calls from BPF, with LTTng's names behind the provider's
constexpr std::string_view kBpfBlock = "block:";
constexpr std::string_view kBpfSched = "sched:";
// In older recordings the hits of probes in Ceph came through a provider of their own, with time and thread as payload.
constexpr std::string_view kOldProbes = "cephprobe:";
// What the shim for Ceph writes by itself comes as `cephshim`, what its collector sends on as `cephring`, with time and
// thread as payload.
constexpr std::string_view kShim = "cephshim:", kRings = "cephring:";

inline bool starts_with(std::string_view s, std::string_view prefix) { return s.substr(0, prefix.size()) == prefix; }

}  // namespace opline
