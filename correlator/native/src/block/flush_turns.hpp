// SPDX-License-Identifier: MIT
// Whose turn it is to complete behind a flush: a completion without sectors names no flush.
#pragma once
#include "block/flush_line.hpp"

namespace opline::block_model {

class FlushTurns {
  public:
    FlushTurns(Matching &m, Bios &bios, Requests &requests, FlushLine &line)
        : m_(m), bios_(bios), requests_(requests), line_(line) {}

    Found empty_to_complete(const BlockEvent &);

  private:
    bool may_end(const BlockEvent &, const ReqRec &) const;
    int place_in_line(const BlockEvent &, const ReqRec &waiter, const FlushCpu *last) const;
    Found first_in_line(const BlockEvent &, int at_least);

    Matching &m_;
    Bios &bios_;
    Requests &requests_;
    FlushLine &line_;
};

}  // namespace opline::block_model
