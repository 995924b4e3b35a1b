// SPDX-License-Identifier: MIT
// The processes that a recording is about: the recorded command, what is attached to, and all that they fork. Tells of
// each op and each bio, when it begins, which program's it is, so that figures are those of these programs alone.
//
// BPF tells of these processes only (docs/internals/collectors.md, "The recorded processes"); LTTng's kernel domain of
// all, and the forks are followed from the processes that the plan names. Recordings without such events have no
// population: then everything counts.
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/flat_map.hpp"
#include "event/event.hpp"

namespace opline {

enum class ProcessStep : std::uint8_t { kFork, kExec, kExit, kRuns };

// One program in one process: from its exec or fork to the next exec or the exit.
struct ProgramRun {
    std::int32_t pid = -1;
    std::uint32_t comm = 0;           // pool id; 0: not known
    std::int64_t begin_ns = kNoTime;  // kNoTime: ran before the recording began
    std::int64_t end_ns = kNoTime;
    std::int64_t last_read_ns = kNoTime;
    bool works = false;     // did something besides reading
    bool executed = false;  // begun by an exec
    bool executes = false;  // ended by an exec
};

// Work of other processes, by device: for the line about the processes left out.
struct OtherProgram {
    std::uint32_t comm = 0;
    std::uint64_t ops = 0, bios = 0;
};

class Population {
  public:
    // A program that only reads, and only in the first part of its time (1 / kStartUpParts), did no work: the loader
    // reads libraries.
    static constexpr std::int64_t kStartUpParts = 20;
    static constexpr std::size_t kMostOthers = 1u << 14;  // pairs of process and device; counted together beyond

    // `commands`: the roots forked by the recorder: the recorded program begins at their exec. `several`: a joined run;
    // its process numbers tell the hosts apart. A joined run has a population if the recording of every host has one;
    // the plan decides.
    explicit Population(std::vector<std::int32_t> roots, std::vector<std::int32_t> commands = {}, bool several = false)
        : roots_(std::move(roots)), commands_(std::move(commands)), known_(!roots_.empty()), several_(several) {}

    // The trace has events of the recorded processes.
    void told() { known_ = known_ || !several_; }
    bool known() const { return known_; }

    // Is the process on another host than the recorded processes?
    bool elsewhere(std::uint32_t host) const { return has_host_ && !several_ && host != host_; }
    // Ordinal of the process's program, from 1. 0: the process is outside the population. `bio`: the process queues a
    // bio. The recorder's child reads the command's file before the exec; any other act of a command's process shows a
    // running program, even if the exec event is lost.
    std::uint32_t run_of(std::uint32_t host, std::int32_t pid, bool bio = false) {
        if (!known() || pid <= 0 || elsewhere(host)) return 0;
        if (pid != recent_pid_) {
            const std::uint32_t *run = runs_of_.find(pid);
            if (bio && !run && is_in(commands_, pid)) return 0;
            recent_run_ = run ? *run : is_root(pid) ? begin(pid, 0, kNoTime) : 0;
            recent_pid_ = pid;
        }
        return recent_run_;
    }
    const ProgramRun &run(std::uint32_t ordinal) const { return runs_[ordinal - 1]; }

    // `all`: the trace tells of every process of the machine. `pid`: of a fork the new process.
    void step(ProcessStep what, bool all, std::uint32_t host, std::int32_t pid, std::int32_t parent, std::uint32_t comm,
              std::int64_t ts_ns) {
        if (pid <= 0 || elsewhere(host)) return;
        const std::uint32_t known = run_of(host, what == ProcessStep::kFork ? parent : pid);
        const bool ours = !all || known != 0;
        if (what == ProcessStep::kFork || what == ProcessStep::kExit || (ours && what == ProcessStep::kExec))
            end(pid, ts_ns, what == ProcessStep::kExec);
        if (!ours) return;
        has_host_ = true;
        host_ = host;
        if (what == ProcessStep::kRuns) return runs_already(pid, comm);
        if (what == ProcessStep::kFork && known == 0) begin(parent, comm, kNoTime);
        if (what == ProcessStep::kExit) return;
        begin(pid, comm, ts_ns);
        runs_.back().executed = what == ProcessStep::kExec;
    }

    // An op of a recorded program ended, or a recorded program queued a bio.
    void did(std::uint32_t ordinal, std::int64_t ts_ns, bool reads) {
        ProgramRun &run = runs_[ordinal - 1];
        if (reads) run.last_read_ns = std::max(run.last_read_ns, ts_ns);
        else run.works = true;
    }
    // Whether the recorded programs only started up, until `last_ns`: for example `sleep 10`, to watch a machine. Reads
    // of a process between fork and exec belong to the start of the executed program.
    bool idle(std::int64_t last_ns) const {
        return std::none_of(runs_.begin(), runs_.end(), [last_ns](const ProgramRun &r) {
            if (r.works || r.last_read_ns == kNoTime) return r.works;
            if (r.executes && !r.executed) return false;
            const std::int64_t end_ns = r.end_ns != kNoTime ? r.end_ns : last_ns;
            return r.begin_ns == kNoTime || r.last_read_ns - r.begin_ns > (end_ns - r.begin_ns) / kStartUpParts;
        });
    }

    // Which ops belong to the population, by serial; also ops no longer in memory.
    void begun(std::uint64_t serial, bool ours) {
        if (serial >= ops_.size()) ops_.resize(serial + 1);
        ops_[serial] = ours;
    }
    bool has_op(std::uint64_t serial) const { return serial < ops_.size() && ops_[serial]; }

    // Work of another process. `dev`: the bio's device; ops have none. The recorder's child before its exec is no other
    // program.
    void other_bio(std::int32_t pid, std::uint32_t comm, std::uint32_t dev) {
        if (several_ || !is_in(commands_, pid)) ++other(pid, comm, dev).bios;
    }
    void other_op(std::int32_t pid, std::uint32_t comm) { ++other(pid, comm, 0).ops; }
    template <class Function>  // void(std::int32_t pid, std::uint32_t dev, const OtherProgram &)
    void each_other(Function function) const {
        others_.for_each([&](std::uint64_t key, const OtherProgram &found) {
            function(static_cast<std::int32_t>(key >> 32), static_cast<std::uint32_t>(key), found);
        });
    }
    const std::vector<ProgramRun> &runs() const { return runs_; }

  private:
    static bool is_in(const std::vector<std::int32_t> &pids, std::int32_t pid) {
        return std::find(pids.begin(), pids.end(), pid) != pids.end();
    }
    bool is_root(std::int32_t pid) const { return is_in(roots_, pid); }
    std::uint32_t begin(std::int32_t pid, std::uint32_t comm, std::int64_t ts_ns) {
        ProgramRun run;
        run.pid = pid;
        run.comm = comm;
        run.begin_ns = ts_ns;
        runs_.push_back(run);
        recent_pid_ = -1;
        return *runs_of_.insert(pid).first = static_cast<std::uint32_t>(runs_.size());
    }
    // Each chunk of a recording tells the running processes; a process is new only in its first chunk.
    void runs_already(std::int32_t pid, std::uint32_t comm) {
        if (const std::uint32_t *run = runs_of_.find(pid); !run) begin(pid, comm, kNoTime);
        else if (ProgramRun &known = runs_[*run - 1]; known.comm == 0) known.comm = comm;
    }
    // A new process may get the same number.
    void end(std::int32_t pid, std::int64_t ts_ns, bool executes) {
        if (const std::uint32_t *run = runs_of_.find(pid)) {
            runs_[*run - 1].end_ns = ts_ns;
            runs_[*run - 1].executes = executes;
            runs_of_.erase(pid);
        }
        if (has_host_) roots_.erase(std::remove(roots_.begin(), roots_.end(), pid), roots_.end());
        recent_pid_ = -1;
    }
    OtherProgram &other(std::int32_t pid, std::uint32_t comm, std::uint32_t dev) {
        std::uint64_t key = std::uint64_t{static_cast<std::uint32_t>(pid)} << 32 | dev;
        if (others_.size() >= kMostOthers && !others_.contains(key)) key = 0;
        OtherProgram &found = others_[key];
        if (comm != 0 && key != 0) found.comm = comm;
        return found;
    }

    std::vector<std::int32_t> roots_;     // roots still running
    std::vector<std::int32_t> commands_;  // the roots forked by the recorder
    bool known_, several_, has_host_ = false;
    std::uint32_t host_ = 0;
    std::vector<ProgramRun> runs_;
    FlatMap<std::int32_t, std::uint32_t> runs_of_;  // ordinals in runs_, by process
    std::int32_t recent_pid_ = -1;
    std::uint32_t recent_run_ = 0;
    std::vector<bool> ops_;
    FlatMap<std::uint64_t, OtherProgram> others_;  // by process and device
};

}  // namespace opline
