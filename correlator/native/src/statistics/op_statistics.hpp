// SPDX-License-Identifier: MIT
// Statistics of the ops that are complete: their stages, their latency, whose programs they are.
#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>

#include "base/flat_map.hpp"
#include "base/strings.hpp"
#include "op/op.hpp"
#include "stages/attribution.hpp"
#include "statistics/stage_stats.hpp"

namespace opline {

class OpStatistics {
  public:
    // `with_tainted`: ops that overlap discarded events count, too.
    explicit OpStatistics(bool with_tainted) : with_tainted_(with_tainted) {}

    // An op of a shape: the attribution is the shape's.
    void count(const ShapedOp &, ShapeAttribution &, bool tainted);
    void count(const Op &, const Attribution &, bool tainted);
    // What StageStatistics::json() has, "tainted" (complete ops that are) and "programs": pid, name, ops that count.
    nlohmann::json json(const StringPool &);

  private:
    struct Program {
        std::uint32_t comm = 0;
        bool main = false;  // the name is the first thread's
        std::uint64_t ops = 0, named_by = 0;
    };
    bool counts(bool tainted) {
        if (tainted) ++tainted_;
        return with_tainted_ || !tainted;
    }
    Program &program(std::int32_t pid) { return recent_ && recent_pid_ == pid ? *recent_ : another_program(pid); }
    [[gnu::noinline]] Program &another_program(std::int32_t pid) {
        recent_pid_ = pid;
        return *(recent_ = programs_.insert(pid).first);
    }
    [[gnu::noinline]] void add_shape(ShapeAttribution &);
    // An op of the shape that has these times, or steps. True: it counts.
    template <class Times>
    bool count_stages(ShapeAttribution &, std::uint64_t op, Times, bool tainted);
    // `tid`, `comm`: of its first point.
    void count_program(std::uint64_t op, std::int32_t pid, std::int64_t tid, std::uint32_t comm) {
        Program &p = program(pid);
        ++p.ops;
        const bool main = tid == pid;
        if (p.comm != 0 && (p.main > main || (p.main == main && p.named_by < op))) return;
        p.comm = comm;
        p.main = main;
        p.named_by = op;
    }

    bool with_tainted_;
    std::uint64_t tainted_ = 0;
    StageStatistics stages_;
    FlatMap<std::int32_t, Program> programs_;  // by process
    Program *recent_ = nullptr;                // of the last op
    std::int32_t recent_pid_ = -1;
};

}  // namespace opline
