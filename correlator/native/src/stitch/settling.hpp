// SPDX-License-Identifier: MIT
// Ops become final: some time after their end, when later events of theirs have come, or at the end of the trace.
#pragma once
#include <limits>

#include "stitch/joins.hpp"
#include "stitch/keys.hpp"

namespace opline {

class Settling {
  public:
    Settling(Stitching &s, OpLives &lives, Keys &keys, Joins &joins)
        : s_(s), lives_(lives), ops_(lives.ops()), keys_(keys), joins_(joins) {}

    // Settles the ops with an end more than the model's linger_ns before now.
    void advance(std::int64_t now_ns) {
        if (now_ns > lives_.settles_ns()) do_what_is_due(now_ns);
    }
    void settle(Op &);
    // End of the trace: settle all ended ops, one per call, until none is left (false); then the open ops, as
    // incomplete.
    void last_event(std::int64_t last_ns) { last_ns_ = last_ns; }
    bool settle_next_ended();
    void settle_open();

  private:
    void settle_ended();
    void do_what_is_due(std::int64_t now_ns);

    Stitching &s_;
    OpLives &lives_;
    OpTable &ops_;
    Keys &keys_;
    Joins &joins_;
    std::int64_t last_ns_ = kNoTime;
};

}  // namespace opline
