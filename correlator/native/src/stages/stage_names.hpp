// SPDX-License-Identifier: MIT
// Names and kinds of stages: the model's, the block layer's, and those that are made of two points' names.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <utility>

#include "base/flat_map.hpp"
#include "base/strings.hpp"
#include "block/steps.hpp"
#include "model/plan.hpp"

namespace opline {

class StageNames {
  public:
    // All are pool ids.
    struct StageWords {
        std::uint32_t work, wait, unknown, block;
        std::uint32_t preflush, postflush;
        std::array<std::uint32_t, kRequestSteps.size()> steps{};  // as kRequestSteps
    };
    struct StageName {
        std::uint32_t stage, kind;
    };
    struct OfWait {
        std::uint32_t others, between, awake;
    };
    static constexpr std::uint32_t kByThreads = 0;  // a stage without a kind in the model (no pool id)

    StageNames(const Plan &, StringPool &);
    const StageWords &words() const { return words_; }
    // Of the interval between two points.
    const StageName &named(std::uint32_t from, std::uint32_t to);
    // The model wants the stage cut by the thread's work for others.
    bool is_behind(std::uint32_t from, std::uint32_t to) const { return behind_.contains(pair_key(from, to)); }
    // "WAIT behind OTHER", if the model has a name for the other work between two points; else `unnamed`.
    std::uint32_t behind_name(std::uint32_t wait, std::uint32_t begins, std::uint32_t ends, std::uint32_t unnamed);
    const OfWait &of_wait(std::uint32_t wait);
    // "POINT#n" for the n-th pass of a point by the op, from the second pass on.
    std::uint32_t label(std::uint32_t point, std::uint32_t n);
    std::uint32_t not_known(std::uint32_t from, std::uint32_t to);
    // `host`: empty: the host's name is unknown, too.
    std::uint32_t not_recorded(const std::string &host);

  private:
    static std::uint64_t pair_key(std::uint32_t from, std::uint32_t to) {
        return static_cast<std::uint64_t>(from) << 32 | to;
    }
    void declare(std::uint32_t from, std::uint32_t to, const std::string &name, std::uint32_t kind);
    void declare_steps();

    StringPool &strings_;
    StageWords words_;
    FlatMap<std::uint64_t, StageName> names_;  // by pair_key
    FlatMap<std::uint64_t, bool> behind_;      // stages with `behind` in the model
    // (stage, stage of the other op) → name; 0: the other stage has no name
    FlatMap<std::uint64_t, std::uint32_t> behind_names_;
    FlatMap<std::uint32_t, OfWait> of_waits_;
    FlatMap<std::uint64_t, std::uint32_t> labels_;  // (point, recurrence number) → label
};

}  // namespace opline
