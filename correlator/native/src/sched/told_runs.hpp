// SPDX-License-Identifier: MIT
// Which thread ran while another waited for its CPU, where the trace says so of single waits.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/flat_map.hpp"
#include "sched/cpu_runs.hpp"

namespace opline {

class ToldRuns {
  public:
    // Just before `tid` got its CPU, at `at_ns`: `ran` had that for `ran_ns`.
    void add(std::uint32_t host, std::int64_t tid, std::int64_t at_ns, CpuRuns::Ran ran, std::int64_t ran_ns) {
        Told &told = threads_[key(host, tid)];
        told.push_back({at_ns, std::max<std::int64_t>(ran_ns, 0), ran});
        if (told.size() > kMostKept) told.erase(told.begin(), told.begin() + kMostKept / 2);
    }
    // Who ran for half of [begin_ns, end_ns) or more, a part of what the thread waited in [wait_ns, on_ns).
    CpuRuns::Ran most(std::uint32_t host, std::int64_t tid, std::int64_t wait_ns, std::int64_t on_ns,
                      std::int64_t begin_ns, std::int64_t end_ns) const {
        const Told *told = threads_.find(key(host, tid));
        if (!told) return {};
        const auto next = after(*told, on_ns);
        if (next == told->begin()) return {};
        const One &last = *std::prev(next);
        if (last.at_ns <= wait_ns) return {};
        const std::int64_t ran_ns = end_ns - std::max(begin_ns, last.at_ns - last.ran_ns);
        return ran_ns * 2 >= end_ns - begin_ns ? last.ran : CpuRuns::Ran{};
    }
    // Nobody asks about what was before.
    void forget_before(std::int64_t ns) {
        threads_.for_each([ns](std::uint64_t, Told &told) { told.erase(told.begin(), after(told, ns)); });
    }

  private:
    static constexpr std::size_t kMostKept = 1u << 18;  // of a thread
    struct One {
        std::int64_t at_ns, ran_ns;
        CpuRuns::Ran ran;
    };
    using Told = std::vector<One>;
    static std::uint64_t key(std::uint32_t host, std::int64_t tid) {
        return std::uint64_t{host} << 32 | static_cast<std::uint32_t>(tid);
    }
    static Told::const_iterator after(const Told &told, std::int64_t ns) {
        return std::upper_bound(told.begin(), told.end(), ns,
                                [](std::int64_t at, const One &o) { return at < o.at_ns; });
    }
    FlatMap<std::uint64_t, Told> threads_;
};

}  // namespace opline
