// SPDX-License-Identifier: MIT
#include "ops_to_count.hpp"

namespace opline {
namespace {

constexpr std::size_t kAhead = 4;  // ops

}  // namespace

void OpsToCount::share() {
    if (!blocks_) blocks_ = std::make_unique<std::array<Block, kBlocks>>();
}

// The block that is being filled. There is one to go on with, whose ops have been counted.
void OpsToCount::hand_over() {
    if (++filled_ - counted_ == kBlocks) {
        const std::lock_guard<std::mutex> lock(counting_);
        if (filled_ - counted_ == kBlocks) count_first();
    }
    Block &next = filling();
    for (std::size_t i = 0; i < next.size; ++i) frozen_.drop(next.ops[i].chunk);
    next.size = 0;
}

// By who holds counting_.
void OpsToCount::count_first() {
    const Block &block = (*blocks_)[counted_ % kBlocks];
    for (std::size_t i = 0; i < block.size; ++i) {
        if (i + kAhead < block.size) FrozenOps::expect(block.ops[i + kAhead].op);
        const Waiting &w = block.ops[i];
        statistics_.count(*w.op, *w.shape, w.tainted);
    }
    ++counted_;
}

bool OpsToCount::help() {
    if (filled_ == counted_) return false;
    const std::unique_lock<std::mutex> lock(counting_, std::try_to_lock);
    if (!lock || filled_ == counted_) return false;
    count_first();
    return true;
}

// Also those of the block that is being filled. Nobody else counts until there are more.
void OpsToCount::count_all() {
    if (filling().size != 0) hand_over();
    const std::lock_guard<std::mutex> lock(counting_);
    while (filled_ != counted_) count_first();
}

nlohmann::json OpsToCount::json(const StringPool &strings) {
    count_waiting();
    return statistics_.json(strings);
}

}  // namespace opline
