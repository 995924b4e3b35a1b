// SPDX-License-Identifier: MIT
// The ops in memory, by references that outlive them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "ahead.hpp"
#include "frozen_ops.hpp"
#include "op.hpp"

namespace opline {

// A reference that outlives the op: slot and serial in one number, never 0.
constexpr std::uint64_t op_ref(const Op &op) { return ((op.serial + 1) << 24) | op.slot; }
constexpr std::uint64_t serial_of(std::uint64_t ref) { return (ref >> 24) - 1; }
constexpr std::uint32_t slot_of(std::uint64_t ref) { return static_cast<std::uint32_t>(ref & 0xffffff); }

constexpr std::uint64_t kNoSerial = ~std::uint64_t{0};  // of an op's place while it is no op's

// The ops in memory. At most 2^24 at once; 2^39 in a trace.
class OpTable {
  public:
    Op &create() {
        Op &op = take_slot();
        op.serial = next_serial_++;
        op.state = OpState::kOpen;
        op.facts() = kNoFacts;
        return op;
    }
    // Aliases have serials of their own: ops are numbered without gaps for them.
    Op &create_alias() {
        Op &op = take_slot();
        op.serial = (std::uint64_t{1} << 39) + next_alias_++;
        op.state = OpState::kAlias;
        return op;
    }
    // The number of the op that was made last, which turned out to be a part of another, goes to the next.
    void take_back_number(const Op &op) {
        if (op.serial + 1 == next_serial_) --next_serial_;
    }
    void release(Op &op) {
        slots_[op.slot] = {};
        free_.push_back(op.slot);
        --live_;
        op.reset(&shapes_);
        put_by(op);
    }
    void release(std::uint64_t ref) {
        if (Op *op = at(ref)) release(*op);
    }
    // The op has ended and is not needed until it is settled, or somebody asks for it after all: it is put away, if it has no more than
    // a frozen op can hold. No pointer to it may be in use.
    void freeze(std::uint64_t ref) {
        Slot &slot = slots_[slot_of(ref)];
        if (!slot.op || slot.op->state != OpState::kEnded || slot.op->serial != serial_of(ref)) return;
        slot.frozen = frozen_.put(*slot.op);
        if (!slot.frozen) return;
        put_by(*slot.op);
        slot.op = nullptr;
    }
    // The op as it was put away; nullptr: it is not, or was settled.
    FrozenOps::Op *frozen(std::uint64_t ref) const {
        FrozenOps::Op *op = slots_[slot_of(ref)].frozen;
        return op && op->serial == serial_of(ref) ? op : nullptr;
    }
    // What was put away is somebody's, who drops it.
    void release_frozen(std::uint64_t ref) {
        const std::uint32_t number = slot_of(ref);
        slots_[number] = {};
        free_.push_back(number);
        --live_;
    }
    // nullptr: it has none.
    const Key *first_key(std::uint64_t ref) const {
        const Slot &slot = slots_[slot_of(ref)];
        if (slot.frozen) return FrozenOps::keys(*slot.frozen).first;
        return slot.op && !slot.op->keys.empty() ? slot.op->keys.data() : nullptr;
    }
    // An op will be asked for soon, and has left the caches: its slot, then the op, then what the op refers to.
    [[gnu::always_inline]] void expect_slot(std::uint64_t ref) const { fetch(&slots_[slot_of(ref)], 1); }
    [[gnu::always_inline]] void expect_op(std::uint64_t ref) const {
        const Slot &slot = slots_[slot_of(ref)];
        if (slot.op) fetch(slot.op, sizeof(Op));
        else FrozenOps::expect(slot.frozen);
    }
    [[gnu::always_inline]] void expect_contents(std::uint64_t ref) const {
        const Slot &slot = slots_[slot_of(ref)];
        if (!slot.op) return;
        slot.op->transitions.expect();
        fetch(slot.op->object.data(), 1);
        fetch(slot.op->keys.data(), 1);
    }
    // What a ref leads to through its aliases: an op and which child of it, or a batch, or nothing (it was settled).
    struct Target {
        Op *op = nullptr;
        Batch *batch = nullptr;
        std::uint32_t child = 0;
    };
    Target resolve(std::uint64_t ref) const {
        Target out;
        for (int depth = 0; depth < 64; ++depth) {
            Op *op = at(ref);
            if (!op) return {};
            if (op->state != OpState::kAlias) {
                out.op = op;
                return out;
            }
            if (op->alias_batch) return {nullptr, op->alias_batch, 0};
            out.child = out.child == 0 ? op->alias_child : out.child + op->alias_children_base;
            ref = op->alias_of;
        }
        return {};
    }
    // nullptr: the op was settled, or the ref is an alias.
    Op *itself(std::uint64_t ref) const {
        Op *op = at(ref);
        return op && op->state != OpState::kAlias ? op : nullptr;
    }
    // nullptr: the op was settled.
    Op *find(std::uint64_t ref) const {
        Op *op = at(ref);
        return op && op->state == OpState::kAlias ? resolve(ref).op : op;
    }
    std::size_t live() const { return live_; }
    std::uint64_t created() const { return next_serial_; }
    bool full() const { return live_ >= (1u << 24) - 1; }
    Shapes &shapes() { return shapes_; }
    Ahead &ahead() { return ahead_; }
    FrozenOps &frozen_ops() { return frozen_; }
    template <class F>
    void for_each_live(F &&f) {
        for (std::uint32_t n = 0; n < slots_.size(); ++n) {
            if (slots_[n].frozen) thaw(n);
            Op *op = slots_[n].op;
            if (!op || (op->state != OpState::kOpen && op->state != OpState::kEnded)) continue;
            ahead_.see(*op);
            f(*op);
        }
    }

  private:
    struct Slot {
        Op *op = nullptr;
        FrozenOps::Op *frozen = nullptr;  // then there is no op
    };
    [[gnu::always_inline]] Op *at(std::uint64_t ref) const {
        const Slot &slot = slots_[slot_of(ref)];
        if (slot.op) {
            if (slot.op->serial != serial_of(ref)) return nullptr;
            ahead_.see(*slot.op);
            return slot.op;
        }
        return slot.frozen && slot.frozen->serial == serial_of(ref) ? &thaw(slot_of(ref)) : nullptr;
    }
    // Who asks for a frozen op can't tell the difference.
    [[gnu::noinline]] Op &thaw(std::uint32_t number) const {
        Op &op = take_spare();
        frozen_.take(slots_[number].frozen, op);
        op.slot = number;
        slots_[number] = {&op, nullptr};
        return op;
    }
    // It is nobody's, and ready for a new op.
    void put_by(Op &op) const {
        op.state = OpState::kFree;
        op.serial = kNoSerial;
        op.followed_as = 0;
        op.ahead_ns = kNoTime;
        spare_.push_back(&op);
    }
    Op &take_spare() const {
        if (spare_.empty()) add_spare();
        Op &op = *spare_.back();
        spare_.pop_back();
        return op;
    }
    [[gnu::noinline]] void add_spare() const {
        ops_.push_back(std::make_unique<Op>());
        ops_.back()->transitions.clear(&shapes_);
        put_by(*ops_.back());
    }
    Op &take_slot() {
        std::uint32_t number;
        if (!free_.empty()) {
            number = free_.back();
            free_.pop_back();
        } else {
            number = static_cast<std::uint32_t>(slots_.size());
            slots_.emplace_back();
        }
        Op &op = take_spare();
        op.slot = number;
        slots_[number].op = &op;
        ++live_;
        return op;
    }
    mutable Shapes shapes_;
    mutable std::vector<Slot> slots_ = std::vector<Slot>(1);  // the first is never anybody's: there a ref of 0 leads
    mutable std::vector<std::unique_ptr<Op>> ops_;
    mutable std::vector<Op *> spare_;  // the last one was used last
    mutable FrozenOps frozen_;
    mutable Ahead ahead_;
    std::vector<std::uint32_t> free_;
    std::uint64_t next_serial_ = 0, next_alias_ = 0;
    std::size_t live_ = 0;
};

}  // namespace opline
