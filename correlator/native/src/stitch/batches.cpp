// SPDX-License-Identifier: MIT
#include "stitch/batches.hpp"

#include <algorithm>

namespace opline {
namespace {

constexpr std::size_t kManyOrders = std::size_t{1} << 16, kManyWait = 1024;
constexpr std::size_t kBatchWork = 1u << 14;  // points of one batch; a batch with more has lost its end

}  // namespace

void Batches::open(ThreadState &ts, const BoundPoint &bp, std::int64_t ts_ns, std::int64_t tid) {
    leave_open(ts, ts_ns);
    ts.batch = std::make_shared<Batch>();
    ts.batch->serial = batch_serial_++;
    ts.batch->space = bp.batch_space;
    ts.batch->tid = tid;
    ts.batch->begin_ns = ts_ns;
    ts.batch->opened_in_need = bp.slot.needs != kNoSlot;
    ts.batch->before = std::move(ts.done);
    ts.done.clear();
}

void Batches::close(ThreadState &ts, std::int64_t ts_ns) {
    if (!ts.batch) return;
    Batch &batch = *ts.batch;
    batch.end_ns = ts_ns;
    if (batch.reaches) cover(ts.batch);
    else if (batch.opened_in_need) keep_for_owner(ts.batch);
    if (batch.alias != 0) {
        keys_.forget_batch(batch);
    }
    if (batch.idle()) {
        ts.done = std::move(batch.before);
        ts.batch.reset();
        return;
    }
    for (const auto &t : batch.work) ts.done.emplace_back(t.ts_ns, t.point);
    if (batch.declared >= 0 && batch.declared != static_cast<std::int64_t>(batch.members))
        ++s_.counts.batch_counts_differ;
    s_.hooks.batch_closed(batch);
    ts.batch.reset();
}

Fate Batches::work_of(Batch &batch, Passage &p) {
    p.t.evidence = Evidence::kBatch;
    Key key;
    for (const auto &use : p.bp.bind)
        if (keys_.key_of(use, p.ev, p.who, key) == KeyState::kKnown) keys_.bind_batch(batch, key);
    p.t.batch = static_cast<std::int64_t>(batch.serial);
    p.t.order = static_cast<std::uint32_t>(batch.work.size());
    batch.work.push_back(p.t);
    lives_.note_thread(p, ThreadPoint::of_batch(batch.serial));
    ++p.bp.transitions;
    return Fate::kBatch;
}

// Forgets waiting ops that have ended or need nothing more of this order. Without any batch of the order, ops would
// wait for ever.
void Batches::forget_gone(const Key &key, Order &order) {
    auto &waiting = order.waiting;
    const auto gone = [&](std::uint64_t ref) {
        const Op *op = ops_.resolve(ref).op;
        return !op || std::none_of(op->needs.begin(), op->needs.end(),
                                   [&](const BatchNeed &need) { return need.order == key; });
    };
    waiting.erase(std::remove_if(waiting.begin(), waiting.end(), gone), waiting.end());
    order.many = std::max(kManyWait, 2 * waiting.size());
}

// With many orders, the orders without a waiting op are forgotten: as if not seen yet.
Batches::Order &Batches::order_at(const Key &key) {
    if (orders_.size() >= many_orders_ && !orders_.contains(key)) {
        orders_.erase_if([this](const Key &at, Order &order) {
            forget_gone(at, order);
            return order.waiting.empty();
        });
        many_orders_ = std::max(kManyOrders, 2 * orders_.size());
    }
    return *orders_.insert(key).first;
}

Key Batches::order_of(const BoundPoint &bp, const Event &ev, std::uint32_t host) const {
    KeyBuilder order(bp.batch_space);
    order.add(std::uint64_t{host});
    if (bp.slot.among != kNoSlot) order.add(ev.slots[bp.slot.among]);
    return {order.lo, order.hi};
}

// An op needs no batch for a position already reached.
void Batches::await(Op &op, const Passage &p) {
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

// The op continues, so a batch has reached the op's position. The trace does not have this batch.
void Batches::leave(Op &op) {
    for (const auto &need : op.needs)
        if (need.sure) ++s_.counts.batches_unseen;
    op.needs.clear();
}

void Batches::cover(const std::shared_ptr<Batch> &batch) {
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

// No event said how far the batch reached: the owner of the batch did the work for itself.
void Batches::keep_for_owner(const std::shared_ptr<Batch> &batch) {
    Op *op = batch->owner == 0 || batch->work.empty() ? nullptr : ops_.resolve(batch->owner).op;
    if (!op) return;
    const auto mine = std::find_if(op->needs.begin(), op->needs.end(),
                                   [&](const BatchNeed &need) { return need.order == batch->order; });
    if (mine == op->needs.end()) return;
    op->batches.push_back({batch, mine->joined_order});
    ++batch->members;
    op->needs.erase(mine);
}

// Makes the op a member if the batch reaches the position needed by the op. Returns whether the op needs a later
// position of this order.
bool Batches::still_needs(Op &op, const std::shared_ptr<Batch> &batch) {
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

void Batches::leave_open(ThreadState &ts, std::int64_t ts_ns) {
    if (!ts.batch) return;
    ++s_.counts.batches_left_open;
    close(ts, ts_ns);
}

void Batches::report_open(ThreadState &ts) {
    if (!ts.batch) return;
    ++s_.counts.batches_left_open;
    s_.hooks.batch_closed(*ts.batch);
    ts.batch.reset();
}

void Batches::reached(Passage &p) {
    Batch &batch = *p.ts.batch;
    batch.reaches = true;
    batch.reached = std::max(batch.reached, p.ev.slots[p.bp.slot.reaches].bits());
    batch.order = order_of(p.bp, p.ev, p.who.host);
}

bool Batches::is_full(const Batch &batch) { return batch.work.size() >= kBatchWork; }

}  // namespace opline
