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

    // The op of a finished request: from the first known step to the completion. nullptr: the request is no op.
    Op *op_of(std::uint32_t host, const Request &);

  private:
    Stitching &s_;
    OpLives &lives_;
    OwnThreads threads_;
};

}  // namespace opline
