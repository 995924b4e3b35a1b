// SPDX-License-Identifier: MIT
#include "ops_to_count.hpp"

#include <algorithm>

namespace opline {
namespace {

constexpr std::ptrdiff_t kAhead = 4;      // ops
constexpr std::size_t kFetched = 5 * 64;  // of one that was put away: with some twenty times

}  // namespace

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
    block.ops[block.size++] = {nullptr, &shape, 0, tainted};
    ShapedOp &copy = block.copies[block.copied++] = op;
    copy.list.times = block.times.data() + block.used;
    std::copy_n(op.list.times, times, block.times.data() + block.used);
    block.used += times;
}

void OpsToCount::count(const Op &op, const Attribution &found, bool tainted) {
    count_waiting();
    statistics_.count(op, found, tainted);
}

// The block that is being filled. There is one to go on with, whose ops have been counted.
void OpsToCount::hand_over() {
    bool full;
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        full = ++filled_ - counted_ == kBlocks;
    }
    if (full) {
        const std::lock_guard<std::mutex> counting(counting_);
        if (filled_ - counted_ == kBlocks) count(*blocks_[counted_ % kBlocks]);
    }
    Block &next = filling();
    for (std::size_t i = 0; i < next.size; ++i)
        if (next.ops[i].frozen) frozen_.drop(next.ops[i].chunk);
    next.size = next.copied = next.used = 0;
}

// The first that waits, by who holds counting_.
void OpsToCount::count(const Block &block) {
    const ShapedOp *copy = block.copies.data();
    for (const Waiting *w = block.ops.data(), *past = w + block.size; w != past; ++w) {
        if (past - w > kAhead && w[kAhead].frozen) fetch(w[kAhead].frozen, kFetched);
        if (w->frozen) statistics_.count(*w->frozen, *w->shape, w->tainted);
        else statistics_.count(*copy++, *w->shape, w->tainted);
    }
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
    return statistics_.json(strings);
}

}  // namespace opline
