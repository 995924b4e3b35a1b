// SPDX-License-Identifier: MIT
// What is not known of an op's stages where events were lost: that its time was spent there, and no more.
#pragma once
#include <algorithm>
#include <cstdint>

#include "base/lost_intervals.hpp"
#include "stages/attribution.hpp"

namespace opline {

// Joins each run of neighbouring stages with lost events into one stage with this name and kind; with `whole`, all
// stages. A loss at just the end of a stage leaves the stage alone. False: no stage has a loss.
inline bool forget_lost_stages(Attribution &a, const LostIntervals &lost, bool whole, std::uint32_t name,
                               std::uint32_t kind) {
    const auto concerned = [&](const StageCut &s) {
        return whole || lost.overlap(s.begin_ns + 1, s.begin_ns + s.duration_ns - 1);
    };
    if (std::none_of(a.stages.begin(), a.stages.end(), concerned)) return false;
    std::size_t kept = 0;
    bool in_run = false;
    a.unknown_ns = 0;
    for (std::size_t i = 0; i < a.stages.size(); ++i) {
        const StageCut s = a.stages[i];
        const bool joins = concerned(s);
        const StageCut *before = kept > 0 ? &a.stages[kept - 1] : nullptr;
        if (joins && in_run && before->begin_ns + before->duration_ns == s.begin_ns) {
            StageCut &run = a.stages[kept - 1];
            run.duration_ns += s.duration_ns;
            run.to = s.to, run.to_at = s.to_at, run.tid = s.tid;
        } else {
            StageCut &next = a.stages[kept++];
            next = s;
            if (joins) next.stage = name, next.kind = kind, next.request = 0, next.waits = false;
        }
        in_run = joins;
    }
    a.stages.resize(kept);
    for (const StageCut &s : a.stages)
        if (s.kind == kind) a.unknown_ns += s.duration_ns;
    return true;
}

}  // namespace opline
