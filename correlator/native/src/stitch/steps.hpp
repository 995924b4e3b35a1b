// SPDX-License-Identifier: MIT
// What is done for every event that is about an op, in line.
#pragma once
#include "stitch/key_builder.hpp"
#include "stitch/stitcher.hpp"

namespace opline {

inline Op &Stitcher::new_op(std::uint32_t host, std::int32_t pid, std::int64_t begin_ns) {
    if (ops_.full()) evict_oldest();
    Op &op = ops_.create();
    op.begin_ns = begin_ns;
    op.target = thread_key(host, pid);
    op.host = host;
    op.pid = pid;
    op.hard = true;
    return op;
}

inline void Stitcher::bind_key(Op &op, std::uint64_t ref, std::uint32_t space, const Key &key) {
    std::uint64_t &named = *keys_.insert(key).first;
    if (named == ref) return;
    const std::uint64_t before = named;
    named = ref;
    op.keys.push_back(key);
    if ((lent_spaces_ >> space & 1) != 0) op.lent.emplace_back(space, key);
    if (before != 0) taken_over(before, op, space);
}

}  // namespace opline
