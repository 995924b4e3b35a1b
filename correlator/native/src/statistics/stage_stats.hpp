// SPDX-License-Identifier: MIT
// Statistics per stage, kept while ops settle: how many, sum, largest, percentiles by nearest rank.
// The only way to compute them: a run's tables are fed to the same class.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "op/transitions.hpp"
#include "statistics/distribution.hpp"

namespace opline {

class StageStatistics {
  public:
    // Ops below this id determine the order of the stages.
    static constexpr std::uint64_t kOrderOps = 100'000;

    // `exact`: limit of exact values per stage.
    explicit StageStatistics(std::size_t exact = Distribution::kExact)
        : exact_(exact), unattributed_(exact), unknown_(exact), latency_(exact) {}

    // Names and kinds are small numbers of the caller. Rows of one op come together, in order of seq. Ops that do not
    // count only help with the order.
    void stage(std::uint32_t name, std::uint32_t kind, std::uint64_t op, std::uint32_t seq, std::int64_t duration_ns,
               bool counts) {
        Stage &s = stages_[place_of(name, kind)];
        ++s.rows;
        s.seq_sum += seq;
        if (s.op != op + 1) {
            close(s);
            s.op = op + 1;
            s.sum_ns = 0;
            s.counts = counts;
            if (op < kOrderOps) first_in_op(s, seq);
        }
        s.sum_ns += duration_ns;
    }
    // An op that counts.
    void op(std::int64_t latency_ns, std::int64_t unattributed_ns, std::int64_t unknown_ns) {
        latency_.add(latency_ns);
        unattributed_.add(unattributed_ns);
        unknown_.add(unknown_ns);
    }
    // `text`: names for the caller's numbers. A JSON object: "stages" in the order in which an op meets the stages (by
    // the median, over the ops below kOrderOps, of the stage's first place in the op), "unattributed", "unknown",
    // "latency"; each with count, total_ns, max_ns and "quantiles_ns" (50, 90, 99, 99.9 %). "exact": false if buckets
    // were needed.
    nlohmann::json json(const std::function<std::string(std::uint32_t)> &text);

    // If all values are exact: sums to combine with other runs (Distribution::cells). A JSON object: "cells" and
    // "squares" (the sum, as a text) by group, "stage NAME" or "of NAME"; "kinds": [stage, kind] of all ops' stages;
    // "places": [stage, place, number of ops below kOrderOps with the stage's first place]. Cells are five lists:
    // buckets, counts, sums, least, most.
    nlohmann::json sums(const std::function<std::string(std::uint32_t)> &text);
    // The values of a stage, or of the time in no stage; nullptr for an unknown stage.
    const Distribution *values(std::uint32_t name);
    const Distribution &unattributed() const { return unattributed_; }
    const Distribution &unknown() const { return unknown_; }
    const Distribution &latency() const { return latency_; }
    std::size_t kept() const;  // bytes of values

  private:
    struct Stage {
        explicit Stage(std::size_t exact) : values(exact) {}
        Distribution values;
        std::uint32_t name = 0;
        std::uint64_t rows = 0, seq_sum = 0;  // of all ops
        std::uint64_t op = 0;                 // the last op, plus 1; 0: none
        std::int64_t sum_ns = 0;              // in that op
        std::uint32_t kind = 0;
        bool counts = false;
        std::vector<std::uint64_t> places;  // by first place in the op: the number of ops
        std::uint64_t place_count = 0, place_sum = 0;
    };
    static void close(Stage &s) {
        if (s.op != 0 && s.counts) s.values.add(s.sum_ns);
    }
    static void finish(Stage &s) {
        close(s);
        s.op = 0;
    }
    static void first_in_op(Stage &, std::uint32_t seq);
    // The index of the stage in stages_; new at first sight.
    std::uint32_t place_of(std::uint32_t name, std::uint32_t kind) {
        if (name < places_.size() && places_[name] != 0) return places_[name] - 1;
        return add_stage(name, kind);
    }
    std::uint32_t add_stage(std::uint32_t name, std::uint32_t kind);

    std::size_t exact_;
    std::deque<Stage> stages_;           // stages stay in place
    std::vector<std::uint32_t> places_;  // by name, plus 1
    Distribution unattributed_, unknown_, latency_;
};

}  // namespace opline
