// SPDX-License-Identifier: MIT
#include "stitch/settling.hpp"

#include <algorithm>

namespace opline {

// Settles the first of the ended ops if the end is still valid: a soft end can have moved, and a join can have made the
// op a part of an open op.
void Settling::settle_ended() {
    const auto [end_ns, ref] = lives_.take_ended();
    Op *op = ops_.find(ref);
    if (!op || op->state != OpState::kEnded || op->end_ns != end_ns) return;
    if (Op *partner = op->partner != 0 ? ops_.find(op->partner) : nullptr;
        partner && partner->state == OpState::kOpen) {
        joins_.join_partner(*partner, last_ns_);
        op = ops_.find(ref);
        if (!op || op->state != OpState::kEnded) return;
    }
    settle(*op);
}

void Settling::do_what_is_due(std::int64_t now_ns) {
    last_ns_ = now_ns;
    while (last_ns_ > lives_.settles_ns()) settle_ended();
}

void Settling::settle(Op &op) {
    lives_.close_io_window(op);
    lives_.end_sync(op, kNoTime);
    joins_.part(op);
    s_.hooks.settle(op);
    keys_.forget(op);
    joins_.stop_waiting(op);
    for (auto alias : op.aliases) ops_.release(alias);
    ops_.release(op);
}

bool Settling::settle_next_ended() {
    if (lives_.any_ended()) settle_ended();
    return lives_.any_ended();
}

void Settling::settle_open() {
    std::vector<std::uint64_t> open;
    ops_.for_each_live([&](Op &op) { open.push_back(op_ref(op)); });
    std::sort(open.begin(), open.end());
    for (auto ref : open) {
        Op *op = ops_.find(ref);
        if (!op) continue;
        if (op->partner != 0 && op->hard) op = &joins_.join_partner(*op, last_ns_);
        settle(*op);
    }
}

}  // namespace opline
