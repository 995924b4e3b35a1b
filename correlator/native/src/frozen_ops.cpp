// SPDX-License-Identifier: MIT
#include "frozen_ops.hpp"

#include <cstring>
#include <new>

namespace opline {
namespace {

constexpr std::size_t kChunk = 1u << 16;

}  // namespace

static_assert(sizeof(Op) == 704, "a new field of an op is frozen with it, or has_no_more() looks at it");

FrozenOps::Op *FrozenOps::put(opline::Op &op) {
    const std::size_t transitions = op.transitions.frozen_size();
    if (transitions == 0 || op.state != OpState::kEnded || !op.hard || !op.has_no_more()) return nullptr;
    const std::size_t keys = op.keys.size() * sizeof(Key), size = (sizeof(Op) + keys + transitions + 15) / 16 * 16;
    if (size > kChunk) return nullptr;
    if (chunks_.empty() || chunks_[filling_].used + size > kChunk) {
        if (!chunks_.empty() && chunks_[filling_].ops == 0) empty_.push_back(filling_);
        if (empty_.empty()) {
            chunks_.push_back({static_cast<unsigned char *>(arena_.take(kChunk))});
            empty_.push_back(static_cast<std::uint32_t>(chunks_.size() - 1));
        }
        filling_ = empty_.back();
        empty_.pop_back();
        chunks_[filling_].used = 0;
    }
    Chunk &chunk = chunks_[filling_];
    unsigned char *at = chunk.bytes + chunk.used;
    chunk.used += size;
    ++chunk.ops;
    const ShapedOp shaped = op.shaped();
    auto *frozen = new (at) Op{op.serial, op.global_spaces, op.facts(), filling_, static_cast<std::uint32_t>(op.keys.size()), shaped.whole() ? shaped.list.shape : 0};
    at += sizeof(Op);
    for (const Key &key : op.keys) {  // one, mostly
        std::memcpy(at, &key, sizeof key);
        at += sizeof key;
    }
    op.transitions.freeze(at);
    op.hard = false;
    op.global_spaces = 0;
    op.keys.clear();
    return frozen;
}

void FrozenOps::take(Op *frozen, opline::Op &op) {
    op.serial = frozen->serial;
    op.state = OpState::kEnded;
    op.hard = true;
    op.global_spaces = frozen->global_spaces;
    op.facts() = frozen->facts;
    const unsigned char *at = reinterpret_cast<const unsigned char *>(frozen + 1);
    op.keys.resize(frozen->keys);
    std::memcpy(static_cast<void *>(op.keys.data()), at, frozen->keys * sizeof(Key));
    op.transitions.thaw(at + frozen->keys * sizeof(Key));
    drop(frozen->chunk);
}

}  // namespace opline
