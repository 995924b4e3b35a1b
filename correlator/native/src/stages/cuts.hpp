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
    std::int64_t tid = -1;                  // -1: none (a completion runs on whatever was interrupted)
    std::uint64_t request = 0;              // 0: none
    std::int32_t from_at = -1, to_at = -1;  // transitions that it lies between; -1: a step of a request
    bool waits = false;                     // to be cut by what its thread did for others, as threads differ by op
};

// A transition in its final place. It stays where it is: in its op, or in a batch.
struct PlacedTransition {
    const Transition *transition;
    std::uint32_t order;      // the tie-break of equal times
    std::uint32_t label = 0;  // pool id of the name with its recurrence number
    bool late = false, aside = false;
    std::uint32_t child = 0;  // whose it is; of a batch's work: who joined
    const Transition &t() const { return *transition; }
};

struct Attribution {
    std::vector<PlacedTransition> transitions;  // in time order
    std::vector<StageCut> stages;               // in time order
    std::vector<RequestCut> requests;           // the op's own, and those of its batches that it can have waited for
    std::vector<BatchBio> shared_bios;          // of its batches, the same
    std::int64_t unattributed_ns = 0, unknown_ns = 0;
    std::vector<StateSplit> states;      // per stage; empty: nobody asked, or there are no sched events
    std::vector<StatePart> state_parts;  // of the stages, in time order; empty: nobody asked for them
    std::vector<WaitPart> waits;         // likewise: what their threads waited for
    const Op *op = nullptr;
    std::uint32_t passed = 0, late = 0;         // transitions: how many, and after the end
    std::int64_t first_tid = -1, end_tid = -1;  // of the first, and of the last that is not late
    std::uint32_t first_comm = 0;               // pool id
    OpAttributes attributes;
    std::vector<Transition> unpacked;  // what `transitions` are of, where the op keeps them by its shape

    // The one that was queued first; nullptr: none.
    const RequestCut *first_request() const {
        const RequestCut *first = nullptr;
        for (const auto &r : requests)
            if (!first || r.q < first->q) first = &r;
        return first;
    }
};

}  // namespace opline
