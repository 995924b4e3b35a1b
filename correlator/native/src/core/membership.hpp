// SPDX-License-Identifier: MIT
// Which of the core's ops, bios and requests are the population's (sched/population.hpp), and how many there are: where
// the recording tells which processes it is about.
#pragma once
#include <algorithm>

#include "binding/classes.hpp"
#include "identity/threads.hpp"
#include "link/linker.hpp"
#include "sched/population.hpp"
#include "stages/settled_op.hpp"

namespace opline {

struct MemberCounts {
    std::uint64_t ops = 0, incomplete = 0, requests = 0;
};

// Data written back after the end of the writing ops.
struct DeferredTotals {
    std::uint64_t rows = 0, bytes = 0, done = 0;
    std::int64_t wait_ns = 0;  // from the write to the disk, for finished rows
    void add(const DeferredRow &row, std::int64_t done_ns) {
        ++rows;
        bytes += row.bytes;
        if (done_ns == kNoTime) return;
        ++done;
        wait_ns += done_ns - row.written_ns;
    }
};

class Membership {
  public:
    Membership(Population &population, Linker &linker) : population_(population), linker_(linker) {}

    bool all_programs = false;  // statistics and CSV have the others' ops, too
    MemberCounts own, others;
    DeferredTotals deferred;  // for the ops that count

    bool known() const { return population_.known(); }
    bool counts(std::uint64_t serial) const { return all_programs || !known() || population_.has_op(serial); }
    bool counts(const SettledOp &op) const { return all_programs || !op.is_others(); }
    // `comm`: of the op's first thread.
    void settle(SettledOp &settled, std::int64_t end_ns, std::uint32_t comm) {
        if (!known()) return;
        const Op &op = settled.op;
        MemberCounts &counted = op.program_run == 0 ? others : own;
        ++counted.ops;
        counted.incomplete += !settled.complete;
        settled.has_population = true;
        if (op.program_run == 0) {
            if (!op.io.own) population_.other_op(op.pid, comm);
            return;
        }
        settled.program = population_.run(op.program_run).comm;
        population_.did(op.program_run, end_ns, linker_.directions().direction_of(op) == Direction::kRead);
    }
    // The linker knows the bio. A bio made of another bio has the other bio's program.
    void queued(const BlockEvent &ev, const Bio &bio, std::uint32_t host) {
        if (!known()) return;
        const std::uint64_t from = bio.split_from != 0 ? bio.split_from : bio.parent;
        const BioLink *made_of = from != 0 ? linker_.links().link_of(from) : nullptr;
        std::uint32_t run = made_of ? made_of->program_run : 0;
        if (run == 0 && ev.kind == BlockKind::kBioQueue) run = population_.run_of(host, ev.pid, true);
        if (run != 0) linker_.links().queued_by(bio.id, run);
        if (from != 0) return;
        if (run != 0) population_.did(run, ev.ts_ns, bio.kind == IoKind::kRead);
        else if (const BioLink *link = linker_.links().link_of(bio.id); link && !has(*link))
            population_.other_bio(ev.pid, bio.comm, bio.dev);
    }
    // After the linker has seen the request: of_population: a recorded program queued one of the bios, or owns a served
    // op.
    void request_done(Served &served) {
        if (!known()) return;
        const auto &ops = linker_.requests().served();
        served.of_population =
            served.of_population || std::any_of(ops.begin(), ops.end(), [this](std::uint64_t op) { return has(op); });
        ++(served.of_population ? own : others).requests;
    }
    // A recorded program queued the bio, or owns an op served by the bio.
    bool has(const BioLink &link) const {
        if (link.program_run != 0 || has(link.chosen)) return true;
        if (!link.shared) return false;
        const auto &pages = link.shared->pages;
        const auto &syncs = link.shared->syncs;
        return std::any_of(pages.begin(), pages.end(), [this](const PageShare &p) { return has(p.op); }) ||
               std::any_of(syncs.begin(), syncs.end(), [this](const auto &sync) { return has(sync->op); });
    }

    // A kernel's fork of a thread is no fork of a process; the end of a thread other than the first is no end of a
    // process.
    void process_step(const BoundClass &cls, const Event &ev, std::uint32_t host, const Threads &threads,
                      std::uint32_t comm) {
        const ProcessSlots &s = cls.process;
        const std::int64_t pid = number_in(ev, s.pid, -1), tid = number_in(ev, s.tid, pid);
        if (tid != pid && s.step != ProcessStep::kExec) return;
        auto known = [&](std::int64_t number) { return static_cast<std::int32_t>(threads.of_root(host, number)); };
        population_.step(s.step, s.of_all, host, known(pid), known(number_in(ev, s.parent, -1)), comm, ev.ts_ns);
    }

  private:
    bool has(std::uint64_t op_ref) const { return op_ref != 0 && population_.has_op(serial_of(op_ref)); }

    Population &population_;
    Linker &linker_;
};

}  // namespace opline
