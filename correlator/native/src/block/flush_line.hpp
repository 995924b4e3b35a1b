// SPDX-License-Identifier: MIT
// Requests that wait for a flush, and which flush each is given to (block/blk-flush.c).
#pragma once
#include <vector>

#include "block/requests.hpp"

namespace opline::block_model {

// flush_end_io() completes what a flush was for with interrupts off: right behind it, and until its CPU does something
// else, whatever other CPUs do meanwhile.
class FlushRuns {
  public:
    // An event of that CPU, by its ordinal.
    void saw(std::uint32_t cpu, std::uint64_t ordinal) {
        if (cpu < last_on_cpu_.size()) before_ = std::exchange(last_on_cpu_[cpu], ordinal);
    }
    // A flush has completed with the event at hand, of which this is the ordinal.
    void begin(FlushCpu &, const BlockEvent &, std::uint64_t ordinal);
    // A request that it was for completes.
    void keep(FlushCpu *, const BlockEvent &, std::uint64_t ordinal);
    // The flush that the request waited for is complete, and what that flush was for is completing now.
    bool goes_on(const Device &, const ReqRec &waiter) const;

  private:
    // The last event of each CPU where a flush has completed, by ordinal, and that of this event's CPU before it.
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
