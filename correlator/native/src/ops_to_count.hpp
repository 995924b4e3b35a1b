// SPDX-License-Identifier: MIT
// Settled ops on their way into the statistics. Where another thread helps, they wait in blocks for whichever has time; they are counted in
// their order all the same, by one at a time.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <vector>

#include "frozen_ops.hpp"
#include "op_statistics.hpp"

namespace opline {

class OpsToCount {
  public:
    OpsToCount(bool with_tainted, FrozenOps &frozen) : statistics_(with_tainted), frozen_(frozen) {}
    // From now on help() is called, too.
    void share();
    // An op of a shape with so many times, those of Attributor::times_of(), which are copied where they are needed later.
    void count(const ShapedOp &op, std::size_t times, ShapeAttribution &shape, bool tainted) {
        if (blocks_.empty()) statistics_.count(op, shape, tainted);
        else let_wait(op, times, shape, tainted);
    }
    void count(const Op &, const Attribution &, bool tainted);
    // An op as it was put away. True: it is counted later, and then dropped.
    bool count(const FrozenOps::Op &op, ShapeAttribution &shape, bool tainted) {
        if (blocks_.empty()) {
            statistics_.count(op, shape, tainted);
            return false;
        }
        if (filling().size == Block::kOps) hand_over();
        Block &block = filling();
        block.ops[block.size++] = {&op, &shape, op.chunk, tainted};
        return true;
    }
    // From any thread: counts a block, if one waits and nobody is at it.
    bool help();
    nlohmann::json json(const StringPool &);  // OpStatistics::json() of all

  private:
    struct Waiting {
        const FrozenOps::Op *frozen = nullptr;  // nullptr: the next of the copies
        ShapeAttribution *shape = nullptr;
        std::uint32_t chunk = 0;  // of what is frozen
        bool tainted = false;
    };
    struct Block {
        static constexpr std::size_t kOps = 256, kTimes = 32 * kOps;
        std::array<Waiting, kOps> ops;
        std::array<ShapedOp, kOps> copies;
        std::array<std::int64_t, kTimes> times;  // of the copies
        std::size_t size = 0, copied = 0, used = 0;  // used: of the times
    };
    static constexpr std::size_t kBlocks = 16;
    Block &filling() { return *blocks_[filled_ % kBlocks]; }
    void let_wait(const ShapedOp &, std::size_t times, ShapeAttribution &, bool tainted);
    void hand_over();
    void count(const Block &);
    void count_waiting();

    OpStatistics statistics_;
    FrozenOps &frozen_;
    // A ring: those from counted_ to filled_ wait, the next one is being filled.
    std::vector<std::unique_ptr<Block>> blocks_;  // none: nobody helps
    std::mutex mutex_;                            // of these numbers
    std::size_t filled_ = 0, counted_ = 0;        // filled_ is changed by the consumer's thread alone
    std::mutex counting_;                         // of the statistics, and of the first block that waits
};

}  // namespace opline
