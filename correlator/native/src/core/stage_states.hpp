// SPDX-License-Identifier: MIT
// What threads did in each stage of an op.
#pragma once
#include "sched/sched.hpp"
#include "stages/attribution.hpp"

namespace opline {

// Fills the states of the op's attribution; with `parts` also each part of a state. `sched`: nullptr if the trace has
// no such events.
inline void split_states(const Op &op, Attribution &found, const Hosts &hosts, const SchedTimelines *sched,
                         bool with_parts) {
    found.states.clear();
    found.state_parts.clear();
    if (!sched) return;
    found.states.resize(found.stages.size());
    std::int64_t waits = -1;  // the thread that resumes at a completion: the thread of the next stage
    for (std::size_t i = found.stages.size(); i-- > 0;) {
        if (found.stages[i].tid > 0) waits = found.stages[i].tid;
        found.states[i].tid = waits;
    }
    std::vector<StatePart> *parts = with_parts ? &found.state_parts : nullptr;
    for (std::uint32_t i = 0; i < found.stages.size(); ++i) {
        const StageCut &s = found.stages[i];
        const std::int64_t tid = found.states[i].tid, end_ns = s.begin_ns + s.duration_ns;
        const std::uint32_t host = hosts.of_thread(tid, op.host);
        found.states[i] =
            tid > 0 ? sched->split(host, tid, s.begin_ns, end_ns, found.requests, i, parts) : StateSplit{};
    }
}

}  // namespace opline
