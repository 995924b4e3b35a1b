// SPDX-License-Identifier: MIT
// Statistics of the ops that are complete: their stages, their latency, whose programs they are.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/flat_map.hpp"
#include "base/strings.hpp"
#include "op/op.hpp"
#include "stages/settled_op.hpp"
#include "statistics/stage_stats.hpp"

namespace opline {

class OpStatistics final : public OpSink {
  public:
    // `with_tainted`: ops that overlap discarded events count, too. `classes`: only ops of these classes count; empty:
    // all ops, except classes whose name begins with one of `without`.
    OpStatistics(const StringPool &strings, bool with_tainted, std::vector<std::string> classes,
                 std::vector<std::string> without)
        : strings_(strings), with_tainted_(with_tainted), only_(std::move(classes)), without_(std::move(without)) {}

    void op(const SettledOp &) override;
    // The members of StageStatistics::json(), "tainted" (complete tainted ops), "takes_unseen" (counted ops that end at
    // their completion, as no event tells when the application took the completion), "programs": pid, name, counted
    // ops, and "classes": the complete ops of each class, counted or not.
    nlohmann::json json();

  private:
    struct ProgramOps {
        std::uint32_t comm = 0;
        bool main = false;  // the name is the first thread's
        std::uint64_t ops = 0, named_by = 0;
    };
    struct OpClass {
        std::uint64_t ops = 0;
        bool counts = true;
    };
    bool counts(std::uint32_t op_class, bool tainted) {
        OpClass &c = this->op_class(op_class);
        ++c.ops;
        if (!c.counts) return false;
        if (tainted) ++tainted_;
        return with_tainted_ || !tainted;
    }
    OpClass &op_class(std::uint32_t id) {
        return recent_class_ && recent_class_id_ == id ? *recent_class_ : another_class(id);
    }
    [[gnu::noinline]] OpClass &another_class(std::uint32_t id);
    // `name`: pool id of the process's program; 0: unknown.
    ProgramOps &program(std::int32_t pid, std::uint32_t name) {
        const std::uint64_t key = std::uint64_t{static_cast<std::uint32_t>(pid)} << 32 | name;
        return recent_ && recent_program_ == key ? *recent_ : another_program(key);
    }
    [[gnu::noinline]] ProgramOps &another_program(std::uint64_t key) {
        recent_program_ = key;
        return *(recent_ = programs_.insert(key).first);
    }
    // `tid`, `comm`: of the op's first point.
    void count_program(std::uint64_t op, std::int32_t pid, std::int64_t tid, std::uint32_t comm) {
        ProgramOps &p = program(pid, 0);
        ++p.ops;
        const bool main = tid == pid;
        if (p.comm != 0 && (p.main > main || (p.main == main && p.named_by < op))) return;
        p.comm = comm;
        p.main = main;
        p.named_by = op;
    }

    const StringPool &strings_;
    bool with_tainted_;
    std::vector<std::string> only_, without_;
    FlatMap<std::uint32_t, OpClass> classes_;  // by the pool ids of the names
    OpClass *recent_class_ = nullptr;          // of the last op
    std::uint32_t recent_class_id_ = 0;
    std::uint64_t tainted_ = 0, takes_unseen_ = 0;
    StageStatistics stages_;
    FlatMap<std::uint64_t, ProgramOps> programs_;  // by process and, if known, program
    ProgramOps *recent_ = nullptr;                 // of the last op
    std::uint64_t recent_program_ = 0;
};

}  // namespace opline
