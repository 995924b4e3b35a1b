// SPDX-License-Identifier: MIT
// Settled ops on their way into the statistics. Where another thread helps, those that were put away wait in blocks, as they lie, for
// whichever has time; all are counted in their order, by one at a time.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>

#include "frozen_ops.hpp"
#include "op_statistics.hpp"

namespace opline {

class OpsToCount {
  public:
    OpsToCount(bool with_tainted, FrozenOps &frozen) : statistics_(with_tainted), frozen_(frozen) {}
    // From now on help() is called, too.
    void share();
    void count(const ShapedOp &op, ShapeAttribution &shape, bool tainted) {
        count_waiting();
        statistics_.count(op, shape, tainted);
    }
    void count(const Op &op, const Attribution &found, bool tainted) {
        count_waiting();
        statistics_.count(op, found, tainted);
    }
    // An op as it was put away. It is dropped once it is counted.
    void count(const FrozenOps::Op &op, ShapeAttribution &shape, bool tainted) {
        if (!blocks_) {
            statistics_.count(op, shape, tainted);
            return frozen_.drop(op.chunk);
        }
        Block &block = filling();
        block.ops[block.size++] = {&op, &shape, op.chunk, tainted};
        if (block.size == Block::kOps) hand_over();
    }
    // From any thread: counts a block, if one waits and nobody is at it.
    bool help();
    nlohmann::json json(const StringPool &);  // OpStatistics::json() of all

  private:
    struct Waiting {
        const FrozenOps::Op *op;
        ShapeAttribution *shape;
        std::uint32_t chunk;  // of the op: its bytes are not read again to drop it
        bool tainted;
    };
    struct Block {
        static constexpr std::size_t kOps = 256;
        std::array<Waiting, kOps> ops;
        std::size_t size = 0;
    };
    static constexpr std::size_t kBlocks = 16;
    Block &filling() { return (*blocks_)[filled_ % kBlocks]; }
    void hand_over();
    void count_first();
    void count_waiting() {
        if (blocks_ && (filling().size != 0 || filled_ != counted_)) count_all();
    }
    [[gnu::noinline]] void count_all();

    OpStatistics statistics_;
    FrozenOps &frozen_;
    // A ring: those from counted_ to filled_ wait, the next one is being filled.
    std::unique_ptr<std::array<Block, kBlocks>> blocks_;  // none: nobody helps
    std::atomic<std::size_t> filled_{0};                  // changed by the consumer's thread
    std::atomic<std::size_t> counted_{0};                 // by who holds counting_
    std::mutex counting_;                                 // of the statistics, and of the first block that waits
};

}  // namespace opline
