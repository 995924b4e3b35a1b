// SPDX-License-Identifier: MIT
// Which thread ran while another waited for its CPU, where the trace says so of single waits.
#pragma once
#include <algorithm>
#include <cstdint>

#include "sched/cpu_runs.hpp"
#include "sched/told_before.hpp"

namespace opline {

class ToldRuns {
  public:
    // Just before `tid` got its CPU, at `at_ns`: `ran` had that for `ran_ns`.
    void add(std::uint32_t host, std::int64_t tid, std::int64_t at_ns, CpuRuns::Ran ran, std::int64_t ran_ns) {
        told_.add(host, tid, at_ns, {std::max<std::int64_t>(ran_ns, 0), ran});
    }
    // Who ran for half of [begin_ns, end_ns) or more, a part of what the thread waited in [wait_ns, on_ns).
    CpuRuns::Ran most(std::uint32_t host, std::int64_t tid, std::int64_t wait_ns, std::int64_t on_ns,
                      std::int64_t begin_ns, std::int64_t end_ns) const {
        const auto *last = told_.last(host, tid, on_ns);
        if (!last || last->at_ns <= wait_ns) return {};
        const std::int64_t ran_ns = end_ns - std::max(begin_ns, last->at_ns - last->what.ran_ns);
        return ran_ns * 2 >= end_ns - begin_ns ? last->what.ran : CpuRuns::Ran{};
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
