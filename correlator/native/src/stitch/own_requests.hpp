// SPDX-License-Identifier: MIT
// Makes an op of each block request, where the model says so ([requests], docs/model.md): for traces of block events
// alone.
#pragma once
#include "stitch/op_lives.hpp"
#include "stitch/own_threads.hpp"

namespace opline {

class OwnRequests {
  public:
    OwnRequests(Stitching &s, OpLives &lives) : s_(s), lives_(lives), threads_(s.strings, s.plan.requests) {}

    // The op of a request that is finished: from its first known step to its completion. nullptr: it is none.
    Op *op_of(std::uint32_t host, const Request &);

  private:
    Stitching &s_;
    OpLives &lives_;
    OwnThreads threads_;
};

}  // namespace opline
