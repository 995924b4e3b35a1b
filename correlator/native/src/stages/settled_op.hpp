// SPDX-License-Identifier: MIT
// An op as it leaves the core: the one form in which it is handed to those who write tables, CSV or statistics.
#pragma once
#include <cstdint>

#include "link/linker.hpp"
#include "op/op.hpp"
#include "stages/attribution.hpp"

namespace opline {

// Valid during the call that hands it over.
struct SettledOp {
    const Op &op;
    const Attribution &found;  // its stages, its transitions in time order, its requests
    bool complete = false;
    bool tainted = false;                      // its begin or its end can have been lost
    bool unsplit = false;                      // they were not, but what happened in one of its stages
    std::uint32_t reason = 0, no_request = 0;  // pool ids; 0: absent
    bool has_population = false;               // the recording says which processes it is about
    std::uint32_t program = 0;                 // that the op's process ran at its begin, pool id; 0: not known
    bool is_others() const { return has_population && op.program_run == 0; }
};

// Who takes settled ops. Each op comes once, in the order in which ops settle; a bio's links come when it is done,
// those of shared work after the op.
class OpSink {
  public:
    virtual ~OpSink() = default;
    virtual void op(const SettledOp &) = 0;
    virtual void link(const LinkRow &, const BatchBio &) {}
};

}  // namespace opline
