// SPDX-License-Identifier: MIT
#include "frozen_ops.hpp"

#include <cstring>
#include <new>

namespace opline {
namespace {

constexpr std::size_t kChunk = 1u << 16;
constexpr std::size_t kMostTransitions = 1024;  // a longer one would not pay

bool has_more(const Op &op) {
    return op.state != OpState::kEnded || !op.hard || op.has_soft_end || !op.object.empty() || !op.key_text.empty() || !op.file_name.empty() ||
           !op.requests.empty() || !op.batches.empty() || !op.parents.empty() || !op.aliases.empty() || !op.waits.empty() ||
           !op.halves.empty() || op.bios != 0 || op.deferred != 0 || op.io_open || op.had_window || op.data_bytes != 0 || op.write_number != 0 ||
           op.sync_ns != kNoTime || op.synced || op.covered || op.inode != 0 || op.file_dev != 0 || op.partner != 0 || op.order_unsure || op.of_several ||
           op.io.is_io || op.io.space != 0 || op.io.own || op.io.done || op.io.lost || op.io.open_bios != 0;
}

}  // namespace

static_assert(sizeof(Op) == 768, "a new field of an op is frozen with it, or has_more() looks at it");

struct FrozenOps::Op {
    std::uint64_t serial;
    std::int64_t begin_ns, end_ns, offset_bytes, length_bytes;
    std::uint64_t target, global_spaces;
    std::uint32_t host, op_class, end_order, chunk;
    std::int32_t pid;
    std::uint32_t keys;  // behind it, then the transitions
    Direction direction;
    bool has_offset, has_length;
};

std::uint64_t FrozenOps::serial(const Op &op) { return op.serial; }

std::pair<const Key *, std::size_t> FrozenOps::keys(const Op &op) { return {reinterpret_cast<const Key *>(&op + 1), op.keys}; }

ShapedOp FrozenOps::look(const Op &op) {
    const auto *transitions = reinterpret_cast<const unsigned char *>(&op + 1) + op.keys * sizeof(Key);
    return {TransitionList::shaped(transitions), op.serial, op.begin_ns, op.end_ns, op.end_order, op.pid};
}

FrozenOps::Op *FrozenOps::put(const opline::Op &op) {
    const std::size_t transitions = op.transitions.frozen_size();
    if (transitions == 0 || op.transitions.size() > kMostTransitions || has_more(op)) return nullptr;
    const std::size_t keys = op.keys.size() * sizeof(Key), size = (sizeof(Op) + keys + transitions + 15) / 16 * 16;
    if (size > kChunk) return nullptr;
    if (chunks_.empty() || chunks_[filling_].used + size > kChunk) {
        if (!chunks_.empty() && chunks_[filling_].ops == 0) empty_.push_back(filling_);
        if (empty_.empty()) {
            chunks_.push_back({std::unique_ptr<unsigned char[]>(new unsigned char[kChunk])});
            empty_.push_back(static_cast<std::uint32_t>(chunks_.size() - 1));
        }
        filling_ = empty_.back();
        empty_.pop_back();
        chunks_[filling_].used = 0;
    }
    Chunk &chunk = chunks_[filling_];
    unsigned char *at = chunk.bytes.get() + chunk.used;
    chunk.used += size;
    ++chunk.ops;
    auto *frozen = new (at) Op{op.serial, op.begin_ns, op.end_ns, op.offset_bytes, op.length_bytes, op.target, op.global_spaces, op.host, op.op_class,
                               op.end_order, filling_, op.pid, static_cast<std::uint32_t>(op.keys.size()), op.direction, op.has_offset, op.has_length};
    at += sizeof(Op);
    std::memcpy(at, op.keys.data(), keys);
    op.transitions.freeze(at + keys);
    return frozen;
}

void FrozenOps::take(Op *frozen, opline::Op &op) {
    op.serial = frozen->serial;
    op.state = OpState::kEnded;
    op.hard = true;
    op.begin_ns = frozen->begin_ns;
    op.end_ns = frozen->end_ns;
    op.offset_bytes = frozen->offset_bytes;
    op.length_bytes = frozen->length_bytes;
    op.target = frozen->target;
    op.global_spaces = frozen->global_spaces;
    op.host = frozen->host;
    op.op_class = frozen->op_class;
    op.end_order = frozen->end_order;
    op.pid = frozen->pid;
    op.direction = frozen->direction;
    op.has_offset = frozen->has_offset;
    op.has_length = frozen->has_length;
    const unsigned char *at = reinterpret_cast<const unsigned char *>(frozen + 1);
    op.keys.resize(frozen->keys);
    std::memcpy(static_cast<void *>(op.keys.data()), at, frozen->keys * sizeof(Key));
    op.transitions.thaw(at + frozen->keys * sizeof(Key));
    drop(frozen);
}

void FrozenOps::drop(Op *frozen) {
    Chunk &chunk = chunks_[frozen->chunk];
    if (--chunk.ops == 0 && frozen->chunk != filling_) empty_.push_back(frozen->chunk);
}

}  // namespace opline
