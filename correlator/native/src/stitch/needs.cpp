// SPDX-License-Identifier: MIT
// Batches of an order (a log's positions): an op says how far a batch must reach for it, a batch how far it has
// reached, and the op is a member of the first that reaches far enough, whoever's it is.
#include <algorithm>

#include "stitch/steps.hpp"

namespace opline {

namespace {
constexpr std::size_t kManyOrders = std::size_t{1} << 16, kManyWait = 1024;
}

// Those of ops that have ended, or have what they needed. For ever, where no batch of the order is seen.
void Stitcher::forget_gone(const Key &key, Order &order) {
    auto &waiting = order.waiting;
    const auto gone = [&](std::uint64_t ref) {
        const Op *op = ops_.resolve(ref).op;
        return !op || std::none_of(op->needs.begin(), op->needs.end(),
                                   [&](const BatchNeed &need) { return need.order == key; });
    };
    waiting.erase(std::remove_if(waiting.begin(), waiting.end(), gone), waiting.end());
    order.many = std::max(kManyWait, 2 * waiting.size());
}

// Where there are many, those that no op waits for are as if they had not been seen yet.
Stitcher::Order &Stitcher::order_at(const Key &key) {
    if (orders_.size() >= many_orders_ && !orders_.contains(key)) {
        orders_.erase_if([this](const Key &at, Order &order) {
            forget_gone(at, order);
            return order.waiting.empty();
        });
        many_orders_ = std::max(kManyOrders, 2 * orders_.size());
    }
    return *orders_.insert(key).first;
}

Key Stitcher::order_of(const BoundPoint &bp, const Event &ev, std::uint32_t host) const {
    KeyBuilder order(bp.batch_space);
    order.add(std::uint64_t{host});
    if (bp.slot.among != kNoSlot) order.add(ev.slots[bp.slot.among]);
    return {order.lo, order.hi};
}

// What has been reached before needs no batch any more.
void Stitcher::await_batch(Op &op, const Passage &p) {
    const Slot &needed = p.ev.slots[p.bp.slot.needs];
    if (!needed.is_number()) return;
    const Key key = order_of(p.bp, p.ev, p.who.host);
    Order &order = order_at(key);
    if (order.known && needed.bits() <= order.reached) return;
    if (p.spec.batch_do == BatchDo::kOpen && p.ts.batch) {
        p.ts.batch->owner = op_ref(op);
        p.ts.batch->order = key;
    }
    op.needs.push_back({key, needed.bits(), static_cast<std::uint32_t>(op.transitions.size()), order.known});
    order.waiting.push_back(op_ref(op));
    if (order.waiting.size() > order.many) forget_gone(key, order);
}

// Whoever goes on without it has had it: it was not seen.
void Stitcher::leave_batches(Op &op) {
    for (const auto &need : op.needs)
        if (need.sure) ++counts_.batches_unseen;
    op.needs.clear();
}

void Stitcher::cover(const std::shared_ptr<Batch> &batch) {
    Order &order = order_at(batch->order);
    order.known = true;
    order.reached = std::max(order.reached, batch->reached);
    auto &waiting = order.waiting;
    waiting.erase(std::remove_if(waiting.begin(), waiting.end(),
                                 [&](std::uint64_t ref) {
                                     Op *op = ops_.resolve(ref).op;
                                     return !op || !still_needs(*op, batch);
                                 }),
                  waiting.end());
}

// What its own op did while nobody said how far it reached, it did for itself.
void Stitcher::keep_for_owner(const std::shared_ptr<Batch> &batch) {
    Op *op = batch->owner == 0 || batch->work.empty() ? nullptr : ops_.resolve(batch->owner).op;
    if (!op) return;
    const auto mine = std::find_if(op->needs.begin(), op->needs.end(),
                                   [&](const BatchNeed &need) { return need.order == batch->order; });
    if (mine == op->needs.end()) return;
    op->batches.push_back({batch, mine->joined_order});
    ++batch->members;
    op->needs.erase(mine);
}

// Makes the op a member for what it needs and the batch reaches; whether something is left in that order.
bool Stitcher::still_needs(Op &op, const std::shared_ptr<Batch> &batch) {
    bool left = false;
    auto &needs = op.needs;
    needs.erase(std::remove_if(needs.begin(), needs.end(),
                               [&](const BatchNeed &need) {
                                   if (!(need.order == batch->order)) return false;
                                   const bool reached = need.needed <= batch->reached;
                                   left = left || !reached;
                                   if (!reached) return false;
                                   op.batches.push_back({batch, need.joined_order});
                                   ++batch->members;
                                   return true;
                               }),
                needs.end());
    return left;
}

}  // namespace opline
