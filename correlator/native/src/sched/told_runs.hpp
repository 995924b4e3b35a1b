// SPDX-License-Identifier: MIT
// Which thread ran while another waited for its CPU, where the trace says so of single waits.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "sched/cpu_runs.hpp"
#include "sched/told_before.hpp"

namespace opline {

class ToldRuns {
  public:
    // While `tid` waited for its CPU, the CPU ran `ran` for `ran_ns`, until `until_ns`. Calls come in order of
    // `until_ns`.
    void add(std::uint32_t host, std::int64_t tid, std::int64_t until_ns, CpuRuns::Ran ran, std::int64_t ran_ns) {
        told_.add(host, tid, until_ns, {std::max<std::int64_t>(ran_ns, 0), ran});
    }
    // The thread that ran longest in [begin_ns, end_ns), a part of the thread's wait in [wait_ns, on_ns). None if
    // another thread may have run longer in the untold rest.
    CpuRuns::Ran most(std::uint32_t host, std::int64_t tid, std::int64_t wait_ns, std::int64_t on_ns,
                      std::int64_t begin_ns, std::int64_t end_ns) const {
        std::vector<RanFor> sums;
        std::int64_t untold_ns = end_ns - begin_ns;
        told_.each(host, tid, wait_ns, on_ns, [&](const auto &told) {
            const RanFor &run = told.what;
            const std::int64_t ran_ns = std::min(told.at_ns, end_ns) - std::max(told.at_ns - run.ran_ns, begin_ns);
            if (ran_ns <= 0) return;
            untold_ns -= ran_ns;
            const auto same = [&](const RanFor &sum) { return sum.ran.tid == run.ran.tid; };
            const auto sum = std::find_if(sums.begin(), sums.end(), same);
            if (sum == sums.end()) sums.push_back({ran_ns, run.ran});
            else sum->ran_ns += ran_ns;
        });
        const auto longest = std::max_element(sums.begin(), sums.end(),
                                              [](const RanFor &a, const RanFor &b) { return a.ran_ns < b.ran_ns; });
        return longest == sums.end() || longest->ran_ns < untold_ns ? CpuRuns::Ran{} : longest->ran;
    }
    void forget_before(std::int64_t ns) { told_.forget_before(ns); }

  private:
    struct RanFor {
        std::int64_t ran_ns;
        CpuRuns::Ran ran;
    };
    ToldBefore<RanFor> told_;
};

}  // namespace opline
