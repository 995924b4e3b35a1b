// SPDX-License-Identifier: MIT
// An op's life: begun, given its points, ended, settled.
#include <algorithm>
#include <cmath>

#include "stitch/steps.hpp"

namespace opline {

// The point's name with the field's value in it.
std::uint32_t Stitcher::point_name(BoundPoint &bp, const PointSpec &spec, const Slot &value) {
    const bool is_text = value.kind == Slot::Kind::kString;
    if (is_text)
        for (const auto &[text, id] : bp.names)
            if (text == value.str()) return id;
    const std::string text = is_text ? std::string(value.str()) : std::to_string(value.i);
    std::string name = spec.name;
    const auto hole = name.find("{}");
    if (hole == std::string::npos) name += text;
    else name.replace(hole, 2, text);
    const auto id = strings_.intern(name);
    if (is_text && bp.names.size() < 16) bp.names.emplace_back(text, id);
    return id;
}

// The child's ref: what is bound to it is the child's.
std::uint64_t Stitcher::begin_child(Op &op, std::uint32_t parent, std::uint32_t &child) {
    op.parents.push_back(parent);
    child = static_cast<std::uint32_t>(op.parents.size());
    Op &alias = ops_.create_alias();
    alias.alias_of = op_ref(op);
    alias.alias_child = child;
    op.aliases.push_back(op_ref(alias));
    return op_ref(alias);
}

// There is no room for another one. Cannot happen below 16 M ops in flight; keeps the reference's 24 bits honest.
void Stitcher::evict_oldest() {
    Op *oldest = nullptr;
    ops_.for_each_live([&](Op &op) {
        if (!oldest || op.serial < oldest->serial) oldest = &op;
    });
    ++counts_.evicted_ops;
    settle(*oldest);
}

void Stitcher::close_io_window(Op &op) {
    if (!op.io_open) return;
    op.io_open = false;
    auto it = std::find(io_windows_.begin(), io_windows_.end(), op_ref(op));
    if (it != io_windows_.end()) {
        *it = io_windows_.back();
        io_windows_.pop_back();
    }
}

void Stitcher::decorate(Op &op, const Passage &p) {
    const BoundPoint &bp = p.bp;
    const Event &ev = p.ev;
    if (bp.class_id != 0) op.op_class = bp.class_id;
    if (bp.slot.op_class != kNoSlot && ev.slots[bp.slot.op_class].kind == Slot::Kind::kString)
        op.op_class = strings_.intern(ev.slots[bp.slot.op_class].str());
    if (bp.slot.object != kNoSlot && with_objects_) {
        const Slot &s = ev.slots[bp.slot.object];
        if (s.kind == Slot::Kind::kString) op.object.assign(s.str());
        else if (s.is_number()) op.object = std::to_string(s.u);
    }
    if (bp.slot.offset != kNoSlot && ev.slots[bp.slot.offset].is_number()) {
        op.offset_bytes = ev.slots[bp.slot.offset].i;
        op.has_offset = op.offset_bytes >= 0;  // below: its file has no places (a pipe, a socket)
    }
    if (bp.slot.length != kNoSlot && ev.slots[bp.slot.length].is_number()) {
        const std::int64_t bytes = ev.slots[bp.slot.length].i;
        op.failed = op.failed || (bytes < 0 && p.spec.role == Role::kEnd);  // it is what a call returned
        if (bytes >= 0) op.length_bytes = bytes;
        op.has_length = (op.has_length || bytes >= 0) && !op.failed;
    }
    if (p.spec.direction != Direction::kUnknown) op.direction = p.spec.direction;
    if (bp.of_files) decorate_with_file(op, p);
}

void Stitcher::decorate_with_file(Op &op, const Passage &p) {
    const BoundPoint &bp = p.bp;
    const PointSpec &spec = p.spec;
    const Event &ev = p.ev;
    const std::int32_t pid = p.who.pid;
    if (bp.slot.file != kNoSlot && ev.slots[bp.slot.file].present()) {
        const Slot &s = ev.slots[bp.slot.file];
        KeyBuilder b(thread_key(op.host, pid));
        if (s.kind == Slot::Kind::kString) {
            op.file_name.assign(s.str());
            b.add(s.str());
        } else {
            b.add(s.bits());
        }
        op.target = b.lo;
    } else if (spec.field.file.empty() && (spec.in_flight == IoWindow::kBegin || spec.sync == IoWindow::kBegin) &&
               op.target == thread_key(op.host, op.pid)) {
        op.target = thread_key(op.host, pid);  // an op may begin in another process
    }
    if (bp.inode_slot != kNoSlot && bp.file_dev_slot != kNoSlot && ev.slots[bp.inode_slot].bits() != 0) {
        op.inode = ev.slots[bp.inode_slot].bits();
        op.file_dev = static_cast<std::uint32_t>(ev.slots[bp.file_dev_slot].bits());
        KeyBuilder b(thread_key(op.host, pid));
        b.add(op.file_dev);
        b.add(op.inode);
        op.target = b.lo;
    }
    if (spec.in_flight == IoWindow::kBegin && !op.io_open &&
        op.has_offset) {  // the length may be what the call returns
        op.io_open = op.had_window = true;
        io_windows_.push_back(op_ref(op));
    } else if (spec.in_flight == IoWindow::kEnd && op.io_open) {
        close_io_window(op);
        hooks_.wrote(op, ev.ts_ns);
    }
    if (spec.sync == IoWindow::kBegin && op.sync_ns == kNoTime && op.state == OpState::kOpen) {
        leave_sync(p.ts, op);
        p.ts.syncing = op_ref(op);
        op.sync_ns = ev.ts_ns;
        op.synced = true;
        hooks_.sync_begun(op, p.who.tid, ev.ts_ns);
    } else if (spec.sync == IoWindow::kEnd) {
        end_sync(op, ev.ts_ns);
    }
}

void Stitcher::end_sync(Op &op, std::int64_t ts_ns) {
    if (op.sync_ns == kNoTime) return;
    hooks_.sync_ended(op, ts_ns);
    op.sync_ns = kNoTime;
}

// The thread does something else: its sync is over, and its end was not seen.
void Stitcher::leave_sync(ThreadState &ts, const Op &next) {
    if (ts.syncing == 0) return;
    Op *op = ops_.find(ts.syncing);
    if (op == &next) return;
    ts.syncing = 0;
    if (op) end_sync(*op, kNoTime);
}

void Stitcher::append(Op &op, const Passage &p) {
    const BoundPoint &bp = p.bp;
    const Transition &t = p.t;
    if (bp.slot.duration != kNoSlot) {
        // Stamped at its end: the begin is computed, and clipped to the op.
        const Slot &s = p.ev.slots[bp.slot.duration];
        const double duration = s.kind == Slot::Kind::kReal ? s.r : s.is_number() ? static_cast<double>(s.i) : -1;
        if (duration >= 0) {
            const double ns = duration * p.spec.duration_unit_ns;
            std::int64_t begin_ns = op.begin_ns;  // also where 64 bits can't hold what the event claims
            if (ns >= 9e18 || __builtin_sub_overflow(t.ts_ns, std::llround(ns), &begin_ns)) begin_ns = op.begin_ns;
            Transition b = t;
            b.ts_ns = std::max(op.begin_ns, begin_ns);
            b.point = strings_.intern(strings_.at(t.point) + " begin");
            b.interval_begin = true;
            add_transition(op, b);
        }
    }
    add_transition(op, t);
    note_thread(p, op_ref(op));
}

// Older than the oldest op nobody asks for.
void Stitcher::keep_thread_point(std::uint32_t host, std::int64_t tid, const ThreadPoint &p) {
    if (thread_points_.many()) {
        std::int64_t oldest = p.ts_ns;
        ops_.for_each_live([&](const Op &op) { oldest = std::min(oldest, op.begin_ns); });
        thread_points_.forget_before(oldest);
    }
    thread_points_.passed(host, tid, p);
}

std::uint32_t Stitcher::add_transition(Op &op, Transition t) {
    t.order = static_cast<std::uint32_t>(op.transitions.size());
    op.transitions.push_back(t);
    return t.order;
}

void Stitcher::end_op(Op &op, std::int64_t ts_ns, std::uint32_t order) {
    op.state = OpState::kEnded;
    op.end_ns = ts_ns;
    op.end_order = order;
    if (op.io_open) {
        close_io_window(op);
        hooks_.wrote(op, ts_ns);
    }
    end_sync(op, ts_ns);
    ended_.push_back({ts_ns, op_ref(op)});
    if (ended_.size() == 1) next_settles();
}

// Of an op that a soft begin made this is the end, until a later one comes. Of another it is where it ended at the
// latest, should its end never come.
void Stitcher::soften_end(Op &op, std::int64_t ts_ns, std::uint32_t order) {
    if (op.has_soft_end && ts_ns < op.soft_end_ns) return;
    op.has_soft_end = true;
    op.soft_end_ns = ts_ns;
    op.soft_end_order = order;
    if (!op.hard) end_op(op, ts_ns, order);
}

// Those of an op that is settled that still name it.
template <class Mine>
[[gnu::always_inline]] inline void Stitcher::forget_keys(const Key *keys, std::size_t count, Mine mine) {
    for (const Key *key = keys; key != keys + count; ++key) {
        std::uint64_t *named = keys_.find(*key);
        if (!named || !mine(*named)) continue;
        keys_.erase_found(named);
        settled_keys_.add(*key);
    }
}

// The first of the ended ops, if that is where it ended: a soft end can have moved on, and what ended may have been
// found to be a part of something that goes on.
void Stitcher::settle_ended() {
    const auto [end_ns, ref] = ended_.front();
    ended_.pop_front();
    next_settles();
    Op *op = ops_.find(ref);
    if (!op || op->state != OpState::kEnded || op->end_ns != end_ns) return;
    if (Op *partner = op->partner != 0 ? ops_.find(op->partner) : nullptr;
        partner && partner->state == OpState::kOpen) {
        join_partner(*partner, last_ns_);
        op = ops_.find(ref);
        if (!op || op->state != OpState::kEnded) return;
    }
    settle(*op);
}

void Stitcher::do_what_is_due(std::int64_t now_ns) {
    last_ns_ = now_ns;
    while (last_ns_ > settles_ns_) settle_ended();
    due_ns_ = settles_ns_;
}

void Stitcher::settle(Op &op) {
    close_io_window(op);
    end_sync(op, kNoTime);
    part(op);
    hooks_.settle(op);
    forget_keys(op.keys.data(), op.keys.size(), [&](std::uint64_t named) { return ops_.find(named) == &op; });
    stop_waiting(op);
    for (auto alias : op.aliases) ops_.release(alias);
    ops_.release(op);
}

void Stitcher::last_event(std::int64_t last_ns) {
    last_ns_ = last_ns;
    threads_.for_each([this](std::uint64_t, ThreadState &ts) {
        if (!ts.batch) return;
        ++counts_.batches_left_open;
        hooks_.batch_closed(*ts.batch);
        ts.batch.reset();
    });
    io_queues_.for_each([this](const Key &, IoQueue &q) { complete_all(q); });
}

bool Stitcher::settle_next_ended() {
    if (!ended_.empty()) settle_ended();
    return !ended_.empty();
}

void Stitcher::settle_open() {
    std::vector<std::uint64_t> open;
    ops_.for_each_live([&](Op &op) { open.push_back(op_ref(op)); });
    std::sort(open.begin(), open.end());
    for (auto ref : open) {
        Op *op = ops_.find(ref);
        if (!op) continue;
        if (op->partner != 0 && op->hard) op = &join_partner(*op, last_ns_);
        settle(*op);
    }
}

}  // namespace opline
