// SPDX-License-Identifier: MIT
// Waits cut by what the thread that ends them did meanwhile for others: for the batch before, or for other ops.
#pragma once
#include <cstdint>

#include "identity/hosts.hpp"
#include "op/thread_points.hpp"
#include "stages/cuts.hpp"
#include "stages/stage_names.hpp"

namespace opline {

// A wait to cut.
struct CutWait {
    std::uint32_t stage, kind, from, to;  // pool ids
    std::int64_t begin_ns, end_ns, tid;
};

class WaitCuts {
  public:
    WaitCuts(StageNames &names, const ThreadPoints &points, const Hosts &hosts)
        : names_(names), thread_points_(points), hosts_(hosts) {}
    // The batch whose work ends a wait with this transition; nullptr: no batch.
    static const Batch *batch_of(const Attribution &, const Transition &arrives);
    // Both add stages, from the last to the first. False: nothing is known and no stage was added.
    bool by_batch(Attribution &, const CutWait &, const Batch &);
    bool by_thread(Attribution &, const CutWait &);

  private:
    struct Piece {
        std::uint32_t stage, from, to;  // pool ids
        std::int64_t begin_ns, end_ns;
        bool goes_on = false;  // continues with the next piece, if the next piece has the same name
    };
    static void add_piece(Attribution &, const CutWait &, const Piece &);
    std::uint32_t piece_name(const Op &, std::uint32_t wait, const ThreadPoint &, const ThreadPoint &next);

    StageNames &names_;
    const ThreadPoints &thread_points_;
    const Hosts &hosts_;
};

}  // namespace opline
