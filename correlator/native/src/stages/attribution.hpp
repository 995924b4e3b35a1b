// SPDX-License-Identifier: MIT
// Cuts a settled op's wall time into stages: by its critical path, or as those of an op before that was like it.
// The partition law: the stages' durations and unattributed_ns sum to end - begin, in integers.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "base/flat_map.hpp"
#include "stages/critical_path.hpp"

namespace opline {

class Attributor {
  public:
    Attributor(const Plan &plan, StringPool &strings, const ThreadPoints &, const Hosts &);
    // The members refer to each other.
    Attributor(const Attributor &) = delete;
    Attributor &operator=(const Attributor &) = delete;
    // `out` is overwritten. Only ended ops get stages; an op without end gets just transitions. Facts shared by all ops
    // of a shape are computed once: `transitions` are then filled only on demand. Returns true if the facts were known
    // before or could be kept.
    bool attribute(const Op &op, Attribution &out);
    void leave_out_transitions() { with_transitions_ = false; }

  private:
    // The places of the stages, equal for all ops of a shape: nothing here depends on times. Ops with a request share
    // an entry if each step of the request lies between the same two points.
    struct ShapeStages {
        // Threads of the request, behind the ordinals of the op's own.
        static constexpr std::uint32_t of_step(StepThread thread) {
            return Shapes::kMaxThreads + static_cast<std::uint32_t>(thread);
        }
        struct Cut {
            std::uint32_t stage, kind, from, to;  // pool ids
            std::uint32_t from_at, to_at;         // in times_of(); each stage begins at the end of the stage before
            std::uint32_t thread;                 // ordinal of the thread at the end of the stage
            bool of_request, waits;
        };
        struct Placed {
            std::uint32_t label;
            bool aside;
        };
        std::vector<Cut> cuts;  // from the first transition to the last
        std::vector<Placed> transitions;
    };
    // For an op that ended with the last transition and has only transitions and at most one request: no batch, no
    // joined half. nullptr: the op needs run(). `scratch` is overwritten.
    ShapeStages *by_shape(const Op &op, Attribution &scratch);
    void fill(const Op &op, const ShapeStages &, Attribution &out);
    // The times of such an op, by place in the shape, then the times of the request's steps.
    const std::int64_t *times_of(const Op &op);
    static std::int64_t tid_of(const Op &op, const ShapeStages::Cut &);
    bool cut_wait(Attribution &, const CutWait &);
    struct ShapeEntry {
        bool tried = false;
        std::uint64_t places = 0;  // of the shape's last op with a request
        ShapeStages *with_request = nullptr;
        std::unique_ptr<ShapeStages> found;
    };
    // The number of transitions before each step of a request, kPlaceBits each.
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

    StageNames names_;
    WaitCuts waits_;
    CriticalPath path_;
    bool with_transitions_ = true;
    std::vector<ShapeEntry> shapes_;  // by shape
    FlatMap<PlacedShape, ShapeEntry, PlacedShapeHash> with_request_;
    std::vector<std::int64_t> times_;  // of times_of()
};

}  // namespace opline
