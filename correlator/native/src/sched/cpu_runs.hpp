// SPDX-License-Identifier: MIT
// Which thread each CPU ran when, where the trace has every switch of it.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/flat_map.hpp"
#include "base/host_key.hpp"
#include "event/event.hpp"

namespace opline {

class CpuRuns {
  public:
    struct Ran {
        std::int32_t tid = -1;   // -1: not known
        std::uint32_t comm = 0;  // pool id; 0: unknown
    };

    void on_switch(std::uint32_t host, std::uint32_t cpu, std::int64_t ts_ns, std::int64_t tid, std::uint32_t comm) {
        if (cpu == kNoCpu) return;
        Runs &runs = cpus_[host_key(host, cpu)];
        if (!runs.empty()) ts_ns = std::max(ts_ns, runs.back().since_ns);
        runs.push_back({ts_ns, {static_cast<std::int32_t>(tid), comm}});
        if (runs.size() > kMostKept) runs.erase(runs.begin(), runs.begin() + kMostKept / 2);
    }
    // Begin of the run of the CPU's thread at `at_ns`; kNoTime: unknown.
    std::int64_t since(std::uint32_t host, std::uint32_t cpu, std::int64_t at_ns) const {
        const Runs *runs = cpus_.find(host_key(host, cpu));
        if (!runs) return kNoTime;
        const auto next = after(*runs, at_ns);
        return next == runs->begin() ? kNoTime : std::prev(next)->since_ns;
    }
    // The thread that the CPU ran longest in the interval, without `tid` and idling.
    Ran most(std::uint32_t host, std::uint32_t cpu, std::int64_t begin_ns, std::int64_t end_ns,
             std::int64_t tid) const {
        constexpr std::size_t kMostLookedAt = 64;
        const Runs *runs = cpus_.find(host_key(host, cpu));
        if (!runs) return {};
        auto at = after(*runs, begin_ns);
        if (at == runs->begin()) return {};
        std::vector<std::pair<Ran, std::int64_t>> sums;
        std::size_t looked_at = 0;
        for (--at; at != runs->end() && at->since_ns < end_ns && looked_at < kMostLookedAt; ++at, ++looked_at) {
            if (at->ran.tid == 0 || at->ran.tid == tid) continue;
            const std::int64_t to_ns =
                std::next(at) == runs->end() ? end_ns : std::min(std::next(at)->since_ns, end_ns);
            auto sum =
                std::find_if(sums.begin(), sums.end(), [&](const auto &s) { return s.first.tid == at->ran.tid; });
            if (sum == sums.end()) sum = sums.insert(sum, {at->ran, 0});
            sum->second += to_ns - std::max(at->since_ns, begin_ns);
        }
        const auto longest = std::max_element(sums.begin(), sums.end(),
                                              [](const auto &a, const auto &b) { return a.second < b.second; });
        return longest == sums.end() || longest->second == 0 ? Ran{} : longest->first;
    }
    // No later question is about an earlier time.
    void forget_before(std::int64_t ns) {
        cpus_.for_each([ns](std::uint64_t, Runs &runs) {
            const auto next = after(runs, ns);
            if (next != runs.begin()) runs.erase(runs.begin(), std::prev(next));
        });
    }
    // Switches are missing.
    void lost() { cpus_ = {}; }

  private:
    static constexpr std::size_t kMostKept = 1u << 20;  // of a CPU
    struct Run {
        std::int64_t since_ns;
        Ran ran;
    };
    using Runs = std::vector<Run>;
    static Runs::const_iterator after(const Runs &runs, std::int64_t ns) {
        return std::upper_bound(runs.begin(), runs.end(), ns,
                                [](std::int64_t at, const Run &run) { return at < run.since_ns; });
    }
    FlatMap<std::uint64_t, Runs> cpus_;
};

}  // namespace opline
