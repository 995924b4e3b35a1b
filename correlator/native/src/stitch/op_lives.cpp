// SPDX-License-Identifier: MIT
#include "stitch/op_lives.hpp"

namespace opline {

// Returns the child's ref: keys bound to this ref belong to the child.
std::uint64_t OpLives::begin_child(Op &op, std::uint32_t parent, std::uint32_t &child) {
    op.parents.push_back(parent);
    child = static_cast<std::uint32_t>(op.parents.size());
    Op &alias = ops_.create_alias();
    alias.alias_of = op_ref(op);
    alias.alias_child = child;
    op.aliases.push_back(op_ref(alias));
    return op_ref(alias);
}

// Makes room for another op. Cannot happen below 16 M ops in flight; keeps the 24 bits of a reference correct.
void OpLives::evict_oldest() {
    Op *oldest = nullptr;
    ops_.for_each_live([&](Op &op) {
        if (!oldest || op.serial < oldest->serial) oldest = &op;
    });
    ++s_.counts.evicted_ops;
    settle_(*oldest);
}

void OpLives::close_io_window(Op &op) {
    if (!op.io_open) return;
    op.io_open = false;
    auto it = std::find(io_windows_.begin(), io_windows_.end(), op_ref(op));
    if (it != io_windows_.end()) {
        *it = io_windows_.back();
        io_windows_.pop_back();
    }
}

void OpLives::end_sync(Op &op, std::int64_t ts_ns) {
    if (op.sync_ns == kNoTime) return;
    s_.hooks.sync_ended(op, ts_ns);
    op.sync_ns = kNoTime;
}

// The thread does something else: its sync is over, and the end event is missing.
void OpLives::leave_sync(ThreadState &ts, const Op &next) {
    if (ts.syncing == 0) return;
    Op *op = ops_.find(ts.syncing);
    if (op == &next) return;
    ts.syncing = 0;
    if (op) end_sync(*op, kNoTime);
}

// No op asks for points before the begin of the oldest op.
void OpLives::keep_thread_point(std::uint32_t host, std::int64_t tid, const ThreadPoint &p) {
    if (thread_points_.many()) {
        std::int64_t oldest = p.ts_ns;
        ops_.for_each_live([&](const Op &op) { oldest = std::min(oldest, op.begin_ns); });
        thread_points_.forget_before(oldest);
    }
    thread_points_.passed(host, tid, p);
}

std::uint32_t OpLives::add_transition(Op &op, Transition t) {
    t.order = static_cast<std::uint32_t>(op.transitions.size());
    op.transitions.push_back(t);
    return t.order;
}

void OpLives::end_op(Op &op, std::int64_t ts_ns, std::uint32_t order) {
    op.state = OpState::kEnded;
    op.end_ns = ts_ns;
    op.end_order = order;
    if (op.io_open) {
        close_io_window(op);
        s_.hooks.wrote(op, ts_ns);
    }
    end_sync(op, ts_ns);
    ended_.push_back({ts_ns, op_ref(op)});
    if (ended_.size() == 1) next_settles();
}

// An op of a soft begin ends here, until a later soft end comes. Any other op has this as its latest end, if its end
// event never comes.
void OpLives::soften_end(Op &op, std::int64_t ts_ns, std::uint32_t order) {
    if (op.has_soft_end && ts_ns < op.soft_end_ns) return;
    op.has_soft_end = true;
    op.soft_end_ns = ts_ns;
    op.soft_end_order = order;
    if (!op.hard) end_op(op, ts_ns, order);
}

// The op takes over the bytes in flight of `gone`.
void OpLives::take_window(Op &op, std::uint64_t ref, std::uint64_t gone_ref) {
    auto it = std::find(io_windows_.begin(), io_windows_.end(), gone_ref);
    if (op.io_open) {
        *it = io_windows_.back();
        io_windows_.pop_back();
    } else {
        *it = ref;
        op.io_open = true;
    }
}

void OpLives::open_io_window(Op &op, std::uint32_t host) {
    op.io_open = op.had_window = true;
    op.window_host = host;
    io_windows_.push_back(op_ref(op));
}

std::pair<std::int64_t, std::uint64_t> OpLives::take_ended() {
    const auto first = ended_.front();
    ended_.pop_front();
    next_settles();
    return first;
}

}  // namespace opline
