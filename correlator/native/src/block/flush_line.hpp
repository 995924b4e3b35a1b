// SPDX-License-Identifier: MIT
// Requests that wait for a flush, and which flush each is given to (block/blk-flush.c).
#pragma once
#include <vector>

#include "block/requests.hpp"

namespace opline::block_model {

// flush_end_io() completes the served requests with interrupts off: right after the flush, before the CPU does anything
// else. Other CPUs may do anything meanwhile.
class FlushRuns {
  public:
    // An event of the CPU, by ordinal.
    void saw(std::uint32_t cpu, std::uint64_t ordinal) {
        if (cpu < last_on_cpu_.size()) before_ = std::exchange(last_on_cpu_[cpu], ordinal);
    }
    // A flush completes with the current event; `ordinal`: of the event.
    void begin(FlushCpu &, const BlockEvent &, std::uint64_t ordinal);
    // A request served by the flush completes.
    void keep(FlushCpu *, const BlockEvent &, std::uint64_t ordinal);
    // The request's flush is complete, and the requests served by the flush are completing now.
    bool goes_on(const Device &, const ReqRec &waiter) const;

  private:
    // By CPU: the ordinal of the last event, for CPUs with a completed flush. before_: the same before the current
    // event, for its CPU.
    std::vector<std::uint64_t> last_on_cpu_;
    std::uint64_t before_ = 0;
};

class FlushLine {
  public:
    FlushLine(Matching &m, StepEvidence &evidence, Bios &bios, Requests &requests, FlushRuns &runs)
        : m_(m), evidence_(evidence), bios_(bios), requests_(requests), runs_(runs) {}

    void note_flush_entry(Index request, std::uint32_t flags);
    void take_flush_bios(const BlockEvent &, Index flush);
    void serve_by(const BlockEvent &, Index flush);
    void serve(Index flush, Index waiter);
    void unserve(Index flush, Index waiter);
    Index flush_of(const Device &, const ReqRec &waiter) const;
    void flush_completed(const BlockEvent &, Index flush);
    void wait_for_second_completion(const BlockEvent &, Index);
    void doubt_waiters(Device &);
    bool lacks_data(const ReqRec &) const;

  private:
    using Kinship = HardwareQueues::Kinship;
    void line_up(Device &, Index);
    void line_for(const BlockEvent &, Index flush);
    bool waits_for_second_flush(const BlockEvent &, ReqRec &);
    Index taken_back(const BlockEvent &, Index flush, bool own_only);
    Index wait_with_bio(const BlockEvent &, Index bio);
    Index waiter_of_bio(const BlockEvent &);
    bool has_other_flush(const Device &, std::uint32_t cpu, Index flush) const;
    static void set_free(Device &, std::uint32_t cpu, const BlockEvent &);
    static FlushCpu free_since(const Device &, std::uint32_t cpu);

    Matching &m_;
    StepEvidence &evidence_;
    Bios &bios_;
    Requests &requests_;
    FlushRuns &runs_;
    std::vector<Index> line_;  // for the flush at hand
};

}  // namespace opline::block_model
