// SPDX-License-Identifier: MIT
// What the attribution of an op makes: its transitions in their final places, its stages, and what its threads did.
#pragma once
#include <cstdint>
#include <vector>

#include "stages/op_attributes.hpp"
#include "model/plan.hpp"
#include "op/op.hpp"
#include "sched/sched.hpp"
#include "waits/wait_part.hpp"

namespace opline {

struct StageCut {
    std::uint32_t stage = 0, kind = 0, from = 0, to = 0;  // pool ids
    std::int64_t begin_ns = 0, duration_ns = 0;
    std::int64_t tid = -1;                  // -1: none (a completion runs on an interrupted thread)
    std::uint64_t request = 0;              // 0: none
    std::int32_t from_at = -1, to_at = -1;  // transitions at both ends; -1: a step of a request
    bool waits = false;                     // to be cut by the thread's work for others, as threads differ by op
};

// A transition in its final place. Stored in the op or in a batch.
struct PlacedTransition {
    const Transition *transition;
    std::uint32_t order;      // the tie-break of equal times
    std::uint32_t label = 0;  // pool id of the name, recurrence number included
    bool late = false, aside = false;
    std::uint32_t child = 0;  // the owning child; for a batch's work: the child that joined
    const Transition &t() const { return *transition; }
};

struct Attribution {
    std::vector<PlacedTransition> transitions;  // in time order
    std::vector<StageCut> stages;               // in time order
    // the op's own requests, and its batches' requests that the op can have waited for
    std::vector<RequestCut> requests;
    std::vector<BatchBio> shared_bios;  // bios of batches, likewise
    std::int64_t unattributed_ns = 0, unknown_ns = 0;
    std::vector<StateSplit> states;      // per stage; empty: not asked for, or no sched events
    std::vector<StatePart> state_parts;  // of the stages, in time order; empty: not asked for
    std::vector<WaitPart> waits;         // likewise: what the stages' threads waited for
    const Op *op = nullptr;
    std::uint32_t passed = 0, late = 0;         // transitions: how many, and after the end
    std::int64_t first_tid = -1, end_tid = -1;  // of the first transition, and of the last transition that is not late
    std::uint32_t first_comm = 0;               // pool id
    OpAttributes attributes;
    std::vector<Transition> unpacked;  // storage of `transitions` if the op keeps its transitions by shape

    // The request queued first; nullptr: none.
    const RequestCut *first_request() const {
        const RequestCut *first = nullptr;
        for (const auto &r : requests)
            if (!first || r.q < first->q) first = &r;
        return first;
    }
};

}  // namespace opline
