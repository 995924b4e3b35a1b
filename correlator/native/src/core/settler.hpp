// SPDX-License-Identifier: MIT
// What becomes of an op that nothing can change any more: its stages, what its threads did in them, whether an event of
// it is lost, and where it is written.
#pragma once
#include <cstdint>

#include "core/common.hpp"
#include "core/host_blocks.hpp"
#include "core/kernel_states.hpp"
#include "core/membership.hpp"
#include "core/outputs.hpp"
#include "core/shortfall.hpp"
#include "link/linker.hpp"
#include "stages/attribution.hpp"
#include "stitch/stitcher.hpp"

namespace opline {

struct SettledCounts {
    std::uint64_t complete = 0, incomplete = 0, tainted = 0, failed = 0;
    std::uint64_t unsplit = 0;  // complete and of exact latency, with lost events in some stages
    std::uint64_t unlinked = 0;
    std::uint64_t by_shape = 0;  // stages taken from the shape (Attributor::by_shape)
    std::uint64_t partition_violations = 0, late_transitions = 0;
};

class Settler {
  public:
    // The parts used by the settler.
    struct Parts {
        Stitcher &stitcher;
        Linker &linker;
        HostBlocks &blocks;
        KernelStates &states;
        const LostEnds &lost_ends;
        Membership &members;
        Outputs &outputs;
    };
    Settler(Common &common, const Parts &parts);

    void settle(Op &);
    void leave_out_transitions() { attributor_.leave_out_transitions(); }
    const SettledCounts &counts() const { return counts_; }

  private:
    // Pool ids of an op's words.
    struct Terms {
        std::uint32_t no_block_events, lost_stage, lost_kind;
        explicit Terms(StringPool &);
    };
    void complete(const Op &, bool lost, SettledOp &);
    std::uint32_t why_incomplete(const Op &) const;
    void explain(Op &);

    Common &common_;
    Parts parts_;
    Attributor attributor_;
    Attribution found_;
    Terms words_;
    SettledCounts counts_;
};

}  // namespace opline
