// SPDX-License-Identifier: MIT
// The ops in memory, by references that outlive them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "op/op.hpp"

namespace opline {

// A reference that outlives the op: slot and serial in one number, never 0.
constexpr std::uint64_t op_ref(const Op &op) { return ((op.serial + 1) << 24) | op.slot; }
constexpr std::uint64_t serial_of(std::uint64_t ref) { return (ref >> 24) - 1; }
constexpr std::uint32_t slot_of(std::uint64_t ref) { return static_cast<std::uint32_t>(ref & 0xffffff); }

constexpr std::uint64_t kNoSerial = ~std::uint64_t{0};  // of a free place

// The ops in memory. At most 2^24 at once; 2^39 in a trace.
class OpTable {
  public:
    Op &create() {
        Op &op = take_slot();
        op.serial = next_serial_++;
        op.state = OpState::kOpen;
        return op;
    }
    // Aliases have separate serials, so that ops are numbered without gaps.
    Op &create_alias() {
        Op &op = take_slot();
        op.serial = (std::uint64_t{1} << 39) + next_alias_++;
        op.state = OpState::kAlias;
        return op;
    }
    // The number of the last new op goes to the next op, as the last op became a part of another op.
    void take_back_number(const Op &op) {
        if (op.serial + 1 == next_serial_) --next_serial_;
    }
    void release(Op &op) {
        slots_[op.slot] = nullptr;
        free_.push_back(op.slot);
        --live_;
        op.reset(&shapes_);
        put_by(op);
    }
    void release(std::uint64_t ref) {
        if (Op *op = at(ref)) release(*op);
    }
    // The target of a ref, through aliases: an op with the number of the child, or a batch, or nothing (settled).
    struct Resolved {
        Op *op = nullptr;
        Batch *batch = nullptr;
        std::uint32_t child = 0;
    };
    Resolved resolve(std::uint64_t ref) const {
        Resolved out;
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
    template <class F>
    void for_each_live(F &&f) {
        for (std::uint32_t n = 0; n < slots_.size(); ++n) {
            Op *op = slots_[n];
            if (!op || (op->state != OpState::kOpen && op->state != OpState::kEnded)) continue;
            f(*op);
        }
    }

  private:
    [[gnu::always_inline]] Op *at(std::uint64_t ref) const {
        Op *op = slots_[slot_of(ref)];
        return op && op->serial == serial_of(ref) ? op : nullptr;
    }
    // Frees the place for a new op.
    void put_by(Op &op) {
        op.state = OpState::kFree;
        op.serial = kNoSerial;
        spare_.push_back(&op);
    }
    Op &take_spare() {
        if (spare_.empty()) add_spare();
        Op &op = *spare_.back();
        spare_.pop_back();
        return op;
    }
    [[gnu::noinline]] void add_spare() {
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
            slots_.push_back(nullptr);
        }
        Op &op = take_spare();
        op.slot = number;
        slots_[number] = &op;
        ++live_;
        return op;
    }
    Shapes shapes_;
    std::vector<Op *> slots_ = std::vector<Op *>(1);  // the first is never anybody's: there a ref of 0 leads
    std::vector<std::unique_ptr<Op>> ops_;
    std::vector<Op *> spare_;  // the last one was used most recently
    std::vector<std::uint32_t> free_;
    std::uint64_t next_serial_ = 0, next_alias_ = 0;
    std::size_t live_ = 0;
};

}  // namespace opline
