// SPDX-License-Identifier: MIT
// What the threads of an op's stages waited for.
#pragma once
#include <algorithm>
#include <tuple>
#include <vector>

#include "stages/attribution.hpp"
#include "waits/wait_chains.hpp"

namespace opline {

// In a stage with more parts, equal parts become one part.
constexpr std::size_t kMostWaitParts = 256;

inline void unite_alike(std::vector<WaitPart> &parts, std::size_t first) {
    const auto begin = parts.begin() + static_cast<std::ptrdiff_t>(first);
    const auto alike = [](const WaitPart &p) {
        return std::tie(p.kind, p.doubt, p.depth, p.path, p.tid, p.comm, p.request, p.instead_tid, p.cause,
                        p.last_cause, p.lock.address, p.certain);
    };
    std::stable_sort(begin, parts.end(), [&](const WaitPart &a, const WaitPart &b) { return alike(a) < alike(b); });
    auto last = begin;
    for (auto at = begin + 1; at != parts.end(); ++at) {
        if (alike(*at) != alike(*last)) {
            *++last = *at;
            continue;
        }
        last->ns += at->ns;
        last->parts += at->parts;
    }
    parts.erase(last + 1, parts.end());
    std::stable_sort(begin, parts.end(), [](const WaitPart &a, const WaitPart &b) { return a.begin_ns < b.begin_ns; });
}

// Fills the waits of the op's attribution; the states must be known. False: in a stage the waits do not sum to the time
// not running. No input may cause this.
inline bool explain_waits(const Op &op, Attribution &found, const Hosts &hosts, WaitChains &chains) {
    bool sums = true;
    chains.begin_op(op.begin_ns);
    for (std::uint32_t i = 0; i < found.stages.size(); ++i) {
        const StateSplit &split = found.states[i];
        const StageCut &s = found.stages[i];
        const std::int64_t waited_ns = split.runnable_ns + split.blocked_io_ns + split.blocked_ns;
        if (!split.known || waited_ns == 0) continue;
        const std::size_t first = found.waits.size();
        chains.explain(hosts.of_thread(split.tid, op.host), split.tid, s.begin_ns, s.begin_ns + s.duration_ns, i,
                       found.waits);
        std::int64_t told_ns = 0;
        for (std::size_t n = first; n < found.waits.size(); ++n) told_ns += found.waits[n].ns;
        sums = sums && told_ns == waited_ns;
        if (found.waits.size() - first > kMostWaitParts) unite_alike(found.waits, first);
    }
    return sums;
}

}  // namespace opline
