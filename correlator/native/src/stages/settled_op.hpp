// SPDX-License-Identifier: MIT
// An op as it leaves the core: the one form in which it is handed to those who write tables, CSV or statistics.
#pragma once
#include <cstdint>

#include "link/linker.hpp"
#include "op/op.hpp"
#include "stages/attribution.hpp"

namespace opline {

// Valid only during the call of the sink.
struct SettledOp {
    const Op &op;
    const Attribution &found;  // the op's stages, transitions in time order, and requests
    bool complete = false;
    bool tainted = false;                      // begin or end of the op can have been lost
    bool unsplit = false;                      // begin and end are sure, but events in a stage are lost
    std::uint32_t reason = 0, no_request = 0;  // pool ids; 0: absent
    bool has_population = false;               // the recording tells its processes
    std::uint32_t program = 0;                 // the program of the op's process at the begin, pool id; 0: unknown
    bool is_others() const { return has_population && op.program_run == 0; }
};

// A receiver of settled ops. Each op comes once, in the order of settling. A bio's links come when the bio is done;
// links of shared work come after the op.
class OpSink {
  public:
    virtual ~OpSink() = default;
    virtual void op(const SettledOp &) = 0;
    virtual void link(const LinkRow &, const BatchBio &) {}
};

}  // namespace opline
