// SPDX-License-Identifier: MIT
// Makes an op of each block request, where the model says so ([requests], docs/model.md): for traces of block events
// alone.
#pragma once
#include "base/flat_map.hpp"
#include "stitch/op_lives.hpp"

namespace opline {

class OwnRequests {
  public:
    OwnRequests(Stitching &s, OpLives &lives) : s_(s), lives_(lives) {}

    // The op of a request that is finished: from its first known step to its completion. nullptr: it is none.
    Op *op_of(std::uint32_t host, const Request &);

  private:
    bool meant(std::uint32_t comm);

    Stitching &s_;
    OpLives &lives_;
    FlatMap<std::uint32_t, std::uint8_t> threads_;  // comm → 1: its requests are ops, 2: they are not
};

}  // namespace opline
