// SPDX-License-Identifier: MIT
// Requests that wait for a flush which is done: whose completion is lost, and whose another request got
// (block/blk-flush.c completes them right behind the flush). A thread may be held up between its getrq and the line, so
// that it comes too late for the flush that seems its own; that it has gone on says that its own has completed.
#pragma once
#include <vector>

#include "block/contests.hpp"
#include "block/flush_line.hpp"

namespace opline::block_model {

class FlushLosses {
  public:
    FlushLosses(Matching &m, StepEvidence &evidence, Bios &bios, Requests &requests, Contests &contests,
                FlushRuns &runs, FlushLine &line)
        : m_(m), evidence_(evidence), bios_(bios), requests_(requests), contests_(contests), runs_(runs), line_(line) {}

    void check_flush_before(const BlockEvent &);
    void give_up_waiters(const BlockEvent &);
    void give_up_left(const BlockEvent &);
    void give_up_owed(Device &);
    bool was_anothers(const ReqRec &) const;
    void settle_left(const BlockEvent &, Index, bool next_flush_done);

  private:
    using Kinship = HardwareQueues::Kinship;
    void give_up_waiter(const BlockEvent &, Index);

    Matching &m_;
    StepEvidence &evidence_;
    Bios &bios_;
    Requests &requests_;
    Contests &contests_;
    FlushRuns &runs_;
    FlushLine &line_;
    std::vector<Index> lost_;  // by the event at hand
};

}  // namespace opline::block_model
