// SPDX-License-Identifier: MIT
#include "ops_to_count.hpp"

#include <algorithm>

namespace opline {

void OpsToCount::share() {
    while (blocks_.size() < kBlocks) blocks_.push_back(std::make_unique<Block>());
}

void OpsToCount::let_wait(const ShapedOp &op, std::size_t times, ShapeAttribution &shape, bool tainted) {
    if (times > Block::kTimes) {
        count_waiting();
        return statistics_.count(op, shape, tainted);
    }
    if (filling().size == Block::kOps || Block::kTimes - filling().used < times) hand_over();
    Block &block = filling();
    Waiting &waiting = block.ops[block.size++];
    waiting = {op, &shape, tainted};
    waiting.op.list.times = block.times.data() + block.used;
    std::copy_n(op.list.times, times, block.times.data() + block.used);
    block.used += times;
}

void OpsToCount::count(const Op &op, const Attribution &found, bool tainted) {
    count_waiting();
    statistics_.count(op, found, tainted);
}

// The block that is being filled. There is one to go on with.
void OpsToCount::hand_over() {
    bool full;
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        full = ++filled_ - counted_ == kBlocks;
    }
    if (!full) return;
    const std::lock_guard<std::mutex> counting(counting_);
    if (filled_ - counted_ == kBlocks) count(*blocks_[counted_ % kBlocks]);
}

// The first that waits, by who holds counting_.
void OpsToCount::count(Block &block) {
    for (std::size_t i = 0; i < block.size; ++i) {
        const Waiting &w = block.ops[i];
        statistics_.count(w.op, *w.shape, w.tainted);
    }
    block.size = block.used = 0;
    const std::lock_guard<std::mutex> lock(mutex_);
    ++counted_;
}

bool OpsToCount::help() {
    const std::unique_lock<std::mutex> counting(counting_, std::try_to_lock);
    if (!counting) return false;
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (filled_ == counted_) return false;
    }
    count(*blocks_[counted_ % kBlocks]);
    return true;
}

// All of them, also those of the block that is being filled. Nobody else counts until there are more.
void OpsToCount::count_waiting() {
    if (blocks_.empty()) return;
    if (filling().size != 0) hand_over();
    const std::lock_guard<std::mutex> counting(counting_);
    while (filled_ != counted_) count(*blocks_[counted_ % kBlocks]);
}

nlohmann::json OpsToCount::json(const StringPool &strings) {
    count_waiting();
    return statistics_.json(strings, !blocks_.empty());
}

}  // namespace opline
