// SPDX-License-Identifier: MIT
// Ops that have ended stay in memory for a while, as something can still be said of them, and mostly nothing is. Put away they take a
// fifth of the room, side by side in the order in which they will be wanted.
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "op.hpp"
#include "pages.hpp"

namespace opline {

class FrozenOps {
  public:
    struct Op {
        std::uint64_t serial, global_spaces;
        OpFacts facts;
        std::uint32_t chunk;
        std::uint32_t keys;  // behind it, then the transitions
        std::uint32_t shape;  // of these, if the op is ShapedOp::whole(); else 0
    };

    // nullptr: the op has more to it than fits. Else the caller's `op` is as if it was reset.
    Op *put(opline::Op &op);
    // The same op again, in one that was reset.
    void take(Op *, opline::Op &op);
    // It will be looked at soon.
    [[gnu::always_inline]] static void expect(const Op *op) { fetch(op, 4 * 64); }  // with some twenty times
    // What it is as long as it stays frozen.
    static SteppedList transitions(const Op &op) { return TransitionList::stepped(reinterpret_cast<const unsigned char *>(&op + 1) + op.keys * sizeof(Key)); }
    static std::pair<const Key *, std::size_t> keys(const Op &op) { return {reinterpret_cast<const Key *>(&op + 1), op.keys}; }
    // One of that chunk is not needed any more. Its bytes stay as they are until the next one is put.
    void drop(std::uint32_t chunk) {
        if (--chunks_[chunk].ops == 0 && chunk != filling_) empty_.push_back(chunk);
    }

  private:
    struct Chunk {
        unsigned char *bytes;
        std::size_t used = 0, ops = 0;  // ops: not taken yet
    };
    Arena arena_;
    std::vector<Chunk> chunks_;
    std::vector<std::uint32_t> empty_;  // chunks without ops
    std::uint32_t filling_ = 0;
};

}  // namespace opline
