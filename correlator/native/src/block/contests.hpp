// SPDX-License-Identifier: MIT
// Completions that fitted several requests behind a flush: whose each was, should a waiter go on without its own.
#pragma once
#include "block/requests.hpp"

namespace opline::block_model {

class Contests {
  public:
    Contests(Matching &m, StepEvidence &evidence, Requests &requests)
        : m_(m), evidence_(evidence), requests_(requests) {}

    void note_contested_flush(const BlockEvent &, Index by);
    const Contested *contested_by_one_that_waits(const ReqRec &) const;

  private:
    static void contend(ReqRec &, const Contested &);

    Matching &m_;
    StepEvidence &evidence_;
    Requests &requests_;
};

}  // namespace opline::block_model
