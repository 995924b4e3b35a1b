// SPDX-License-Identifier: MIT
// The flush machinery (the kernel's block/blk-flush.c), and requests without sectors.
// A bio with PREFLUSH or FUA gets a request of its own. Before its data (PREFLUSH) and after (FUA, if the device has
// none) the machinery issues flush requests, each for all that wait at the time; so flushes are fewer than the bios
// that ask for one. What has data completes twice: with its sectors, and with none when the last flush is done. What
// has none is never issued and completes only with none.
//
// There is one machinery per hardware queue, with one flush in flight. Requests that wait are those of the CPUs of that
// queue (of the CPU that allocated them). A flush is for all that wait when it is started, and it is started when the
// first begins to wait, or when the flush before it, or data between two flushes, is done. Whoever comes later waits
// for the next one, though its getrq comes before this one's issue. What a flush was for goes on, or completes, right
// after it, on the same CPU and in order of arrival. block/hardware_queues.hpp says which CPUs share a queue.
#pragma once
#include <vector>

#include "block/flush_losses.hpp"
#include "block/flush_turns.hpp"

namespace opline::block_model {

// Pass-through commands: without a bio of a file, begun at the issue.
class Passthrough {
  public:
    Passthrough(Matching &m, Requests &requests) : m_(m), requests_(requests) {}

    Fate begin(Index);
    Found to_complete(const BlockEvent &);

  private:
    Matching &m_;
    Requests &requests_;
};

class Flushes {
  public:
    Flushes(Matching &m, Bios &bios, Requests &requests, StepEvidence &evidence, Contests &contests)
        : m_(m),
          requests_(requests),
          contests_(contests),
          line_(m, evidence, bios, requests, runs_),
          turns_(m, bios, requests, line_),
          losses_(m, evidence, bios, requests, contests, runs_, line_),
          passthrough_(m, requests) {}

    FlushRuns &runs() { return runs_; }
    FlushLine &line() { return line_; }
    FlushLosses &losses() { return losses_; }
    Passthrough &passthrough() { return passthrough_; }

    Fate issue_flush(const BlockEvent &);
    Found flush_to_complete(const BlockEvent &);
    Fate complete_empty(const BlockEvent &);
    Fate complete_passthrough(const BlockEvent &);

  private:
    using Kinship = HardwareQueues::Kinship;
    void give_up_flushes(const BlockEvent &);
    void unknown_flush_completed(const BlockEvent &);
    Fate completed_empty(const BlockEvent &, Found);

    Matching &m_;
    Requests &requests_;
    Contests &contests_;
    FlushRuns runs_;
    FlushLine line_;
    FlushTurns turns_;
    FlushLosses losses_;
    Passthrough passthrough_;
    std::vector<Index> lost_;  // flushes, by the event at hand
};

}  // namespace opline::block_model
