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

#include "op_statistics.hpp"

namespace opline {

class OpsToCount {
  public:
    explicit OpsToCount(bool with_tainted) : statistics_(with_tainted) {}
    // From now on help() is called, too.
    void share();
    // An op of a shape with so many times, those of Attributor::times_of(), which are copied where they are needed later.
    void count(const ShapedOp &op, std::size_t times, ShapeAttribution &shape, bool tainted) {
        if (blocks_.empty()) statistics_.count(op, shape, tainted);
        else let_wait(op, times, shape, tainted);
    }
    void count(const Op &, const Attribution &, bool tainted);
    // From any thread: counts a block, if one waits and nobody is at it.
    bool help();
    nlohmann::json json(const StringPool &);  // OpStatistics::json() of all

  private:
    struct Waiting {
        ShapedOp op;
        ShapeAttribution *shape = nullptr;
        bool tainted = false;
    };
    struct Block {
        static constexpr std::size_t kOps = 256, kTimes = 32 * kOps;
        std::array<Waiting, kOps> ops;
        std::array<std::int64_t, kTimes> times;
        std::size_t size = 0, used = 0;  // used: of the times
    };
    static constexpr std::size_t kBlocks = 16;
    Block &filling() { return *blocks_[filled_ % kBlocks]; }
    void let_wait(const ShapedOp &, std::size_t times, ShapeAttribution &, bool tainted);
    void hand_over();
    void count(Block &);
    void count_waiting();

    OpStatistics statistics_;
    // A ring: those from counted_ to filled_ wait, the next one is being filled.
    std::vector<std::unique_ptr<Block>> blocks_;  // none: nobody helps
    std::mutex mutex_;                            // of these numbers
    std::size_t filled_ = 0, counted_ = 0;        // filled_ is changed by the consumer's thread alone
    std::mutex counting_;                         // of the statistics, and of the first block that waits
};

}  // namespace opline
