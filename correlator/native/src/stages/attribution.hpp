// SPDX-License-Identifier: MIT
// Cuts a settled op's wall time into stages by its critical path, walked backwards from the end.
// The partition law: the stages' durations and unattributed_ns sum to end - begin, in integers.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/flat_map.hpp"
#include "base/strings.hpp"
#include "identity/hosts.hpp"
#include "model/plan.hpp"
#include "op/op.hpp"
#include "op/thread_points.hpp"
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
    std::vector<Transition> unpacked;           // what `transitions` are of, where the op keeps them by its shape

    // The one that was queued first; nullptr: none.
    const RequestCut *first_request() const {
        const RequestCut *first = nullptr;
        for (const auto &r : requests)
            if (!first || r.q < first->q) first = &r;
        return first;
    }
};

class Attributor {
  public:
    Attributor(const Plan &plan, StringPool &strings, const ThreadPoints &, const Hosts &);
    // `out` is overwritten. Ended ops only get stages; an op without end gets its transitions alone. What is the same
    // for all ops of a shape is found once: then `transitions` are filled for who wants them only. True: it was found
    // before, or could be kept.
    bool attribute(const Op &op, Attribution &out);
    void leave_out_transitions() { with_transitions_ = false; }

  private:
    // Where the stages of every op of a shape lie: nothing of it depends on times. Of ops with a request, for those
    // where each step of it comes between the same two points.
    struct ShapeStages {
        // Threads of the request, behind the ordinals of the op's own.
        static constexpr std::uint32_t of_step(StepThread thread) {
            return Shapes::kMaxThreads + static_cast<std::uint32_t>(thread);
        }
        struct Cut {
            std::uint32_t stage, kind, from, to;  // pool ids
            std::uint32_t from_at, to_at;         // in times_of(); each begins where the one before ends
            std::uint32_t thread;                 // ordinal of the thread at its end
            bool of_request, waits;
        };
        struct Placed {
            std::uint32_t label;
            bool aside;
        };
        std::vector<Cut> cuts;  // from the first transition to the last
        std::vector<Placed> transitions;
    };
    void run(const Op &op, Attribution &out);
    // Of an op that ended with its last transition and has nothing but transitions and at most one request: no batch,
    // no joined half. nullptr: run() is to say. `scratch` is overwritten.
    ShapeStages *by_shape(const Op &op, Attribution &scratch);
    void fill(const Op &op, const ShapeStages &, Attribution &out);
    // The times of such an op, by place in its shape, then those of its request's steps.
    const std::int64_t *times_of(const Op &op);
    static std::int64_t tid_of(const Op &op, const ShapeStages::Cut &);
    // An end of a stage: the point's name, and how it is shown.
    struct Place {
        explicit Place(std::uint32_t step) : point(step), label(step) {}
        Place(std::uint32_t point, std::uint32_t label, std::ptrdiff_t at)
            : point(point), label(label), at(static_cast<std::int32_t>(at)) {}
        std::uint32_t point, label;
        std::int32_t at = -1;  // the transition
    };
    void place(const Op &op, Attribution &out);
    void mark_path(const Op &op, Attribution &out);
    std::int64_t waits_since(const Op &op, std::uint32_t joined_order) const;
    std::ptrdiff_t predecessor(const Attribution &, std::ptrdiff_t current) const;
    bool aside(const PlacedTransition &) const;
    bool may_cut(const Attribution &, std::ptrdiff_t from, std::ptrdiff_t to, const RequestCut &) const;
    bool connected(const Attribution &, std::ptrdiff_t from, std::ptrdiff_t to) const;
    // The name of the interval between two points, and its kind.
    const std::pair<std::uint32_t, std::uint32_t> &named(std::uint32_t from, std::uint32_t to);
    static std::uint64_t pair_key(std::uint32_t from, std::uint32_t to) {
        return static_cast<std::uint64_t>(from) << 32 | to;
    }
    // stages/behind.cpp: waits, cut by what the thread that ends them did for others. False: nothing.
    struct Wait {
        std::uint32_t stage, kind, from, to;  // pool ids
        std::int64_t begin_ns, end_ns, tid;
    };
    static const Batch *batch_of(const Attribution &, Place to);
    bool cut_by_batch(Attribution &, const Wait &, const Batch &);
    bool cut_by_thread(Attribution &, const Wait &);
    bool cut_wait(Attribution &, const Wait &);
    struct Piece {
        std::uint32_t stage, from, to;  // pool ids
        std::int64_t begin_ns, end_ns;
        bool goes_on = false;  // with the next one, if that has its name
    };
    static void add_piece(Attribution &, const Wait &, const Piece &);
    std::uint32_t piece_name(const Op &, std::uint32_t wait, const ThreadPoint &, const ThreadPoint &next);
    std::uint32_t behind_name(std::uint32_t wait, std::uint32_t begins, std::uint32_t ends, std::uint32_t unnamed);
    struct WaitNames {
        std::uint32_t others, between, awake;  // pool ids
    };
    const WaitNames &wait_names(std::uint32_t wait);
    std::uint32_t kind_by_threads(const Attribution &, Place from, Place to) const;
    void cut(Attribution &, Place from, Place to, std::int64_t begin_ns, std::int64_t end_ns, std::int64_t tid,
             std::uint64_t request, bool is_known);
    std::int64_t cut_request(Attribution &, const RequestCut &, std::int64_t floor_ns, Place &first);

    const Plan &plan_;
    StringPool &strings_;
    const ThreadPoints &thread_points_;
    const Hosts &hosts_;
    bool with_transitions_ = true;
    bool keeps_waits_ = false;  // whole, to be cut later: what their threads did is no matter of an op's shape
    FlatMap<std::uint32_t, WaitNames> wait_names_;
    static constexpr std::uint32_t kByThreads = 0;  // a stage's kind that the model does not say (no pool id)
    FlatMap<std::uint64_t, std::pair<std::uint32_t, std::uint32_t>> names_;  // (from, to) → (stage, kind)
    FlatMap<std::uint64_t, bool> behind_;                                    // (from, to) of the stages that say so
    FlatMap<std::uint64_t, std::uint32_t> behind_names_;  // (stage, stage of others) → name; 0: theirs has none
    bool undecided(const PlacedTransition &before, const PlacedTransition &received) const;
    std::vector<std::vector<std::uint32_t>> after_;                     // per PointSpec: point ids
    std::vector<std::pair<std::uint32_t, std::uint32_t>> recurrences_;  // of this op: (point, how often)
    FlatMap<std::uint64_t, std::uint32_t> labels_;                      // (point, recurrence number) → label
    struct ShapeEntry {
        bool tried = false;
        std::uint64_t places = 0;  // of the last op of the shape that had a request
        ShapeStages *with_request = nullptr;
        std::unique_ptr<ShapeStages> found;
    };
    // Behind which transitions the steps of a request come, kPlaceBits each.
    using StepPlaces = std::uint64_t;
    static StepPlaces places_of(const ShapedList &, const RequestCut &);
    struct PlacedShape {
        std::uint32_t shape = 0;
        StepPlaces places = 0;
        bool operator==(const PlacedShape &o) const { return shape == o.shape && places == o.places; }
    };
    struct PlacedShapeHash {
        std::uint64_t operator()(const PlacedShape &p) const {
            return mix64(p.places ^ (std::uint64_t{p.shape} * 0x9e3779b97f4a7c15u));
        }
    };
    void find(const Op &op, ShapeEntry &, Attribution &scratch);
    std::unique_ptr<ShapeStages> generalize(const Op &op, Attribution &scratch);
    std::vector<ShapeEntry> shapes_;  // by shape
    FlatMap<PlacedShape, ShapeEntry, PlacedShapeHash> with_request_;
    std::vector<std::int64_t> times_;  // of times_of()
    std::uint32_t work_, wait_, unknown_, block_, f_, e_;
    std::array<std::uint32_t, kRequestSteps.size()> steps_{};  // pool ids, as kRequestSteps
};

}  // namespace opline
