// SPDX-License-Identifier: MIT
// Makes an op of each bio that a thread queues for no op, where the model says so ([bios], docs/model.md).
#pragma once
#include "stitch/op_lives.hpp"
#include "stitch/own_threads.hpp"
#include "stitch/thread_states.hpp"

namespace opline {

class OwnBios {
  public:
    OwnBios(Stitching &s, ThreadStates &threads, OpLives &lives)
        : threads_(threads),
          lives_(lives),
          meant_(s.strings, s.plan.bios),
          queued_(s.strings.intern("queued")),
          event_(s.strings.intern("block_bio_queue")) {}

    // The op of a queued bio: a new op, or, for the further bios of a large I/O, the op of the bio before. nullptr: the
    // bio is no op.
    Op *op_of(std::uint32_t host, const BlockEvent &, const Bio &);

  private:
    ThreadStates &threads_;
    OpLives &lives_;
    OwnThreads meant_;
    std::uint32_t queued_, event_;  // pool ids
};

}  // namespace opline
