// SPDX-License-Identifier: MIT
// The shortest ways through the stitcher: a point of one key that is one field, of an op that passes what others passed before. And what is
// done for every op that begins.
#pragma once
#include "key_builder.hpp"
#include "stitcher.hpp"
#include "survey.hpp"

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
    if (before != 0) taken_over(before, op, space);
}

[[gnu::always_inline]] inline void Stitcher::decorate(Op &op, const BoundPoint &bp, const Event &ev, std::int64_t tid, std::int32_t pid) {
    if (bp.class_id != 0) op.op_class = bp.class_id;
    if (bp.class_slot != kNoSlot && ev.slots[bp.class_slot].kind == Slot::Kind::kString) op.op_class = strings_.intern(ev.slots[bp.class_slot].str());
    if (bp.object_slot != kNoSlot && with_objects_) {
        const Slot &s = ev.slots[bp.object_slot];
        if (s.kind == Slot::Kind::kString) op.object.assign(s.str());
        else if (s.is_number()) op.object = std::to_string(s.u);
    }
    if (bp.offset_slot != kNoSlot && ev.slots[bp.offset_slot].is_number()) {
        op.offset_bytes = ev.slots[bp.offset_slot].i;
        op.has_offset = true;
    }
    if (bp.length_slot != kNoSlot && ev.slots[bp.length_slot].is_number() && ev.slots[bp.length_slot].i >= 0) {
        op.length_bytes = ev.slots[bp.length_slot].i;
        op.has_length = true;
    }
    if (bp.direction != Direction::kUnknown) op.direction = bp.direction;
    if (bp.of_files) decorate_with_file(op, bp, ev, tid, pid);
}

// A plain point, whose transition the op has already.
inline void Stitcher::passed(Op &op, BoundPoint &bp, std::int64_t ts_ns) {
    op.global_spaces |= bp.global_spaces;
    ends(op, bp, ts_ns);
}

inline void Stitcher::ends(Op &op, const BoundPoint &bp, std::int64_t ts_ns) {
    if (bp.ends && (op.state == OpState::kOpen || !op.hard)) {
        end_op(op, ts_ns, op.transitions.last_order());
        stop_waiting(op);
    }
}

// From now on the stream's events are about that op, as long as their numbers are the same. One that ended can settle before the next.
inline void Stitcher::follow_from_here(const Event &ev, Op &op, std::uint32_t thread) {
    if (op.state != OpState::kOpen) return lose_track(ev);
    if (op.followed_as == 0) op.followed_as = ++last_followed_;
    followed_[ev.stream] = {&op, op.followed_as, next_by(thread)};
}

// What plain() does, without what BoundClass::bare rules out.
[[gnu::always_inline]] inline bool Stitcher::bare(const BoundClass &cls, const Event &ev, const Lead &lead) {
    BoundPoint &bp = *cls.bare;
    const std::uint64_t *named = lead.known ? keys_.find(lead.key) : nullptr;
    if (!named) return false;
    Op *op = ops_.itself(*named);
    if (!op || op->paired) return false;
    const std::uint32_t thread = op->transitions.push_known(bp.kinds[0], ev.ts_ns, lead.tid, lead.pid);
    if (thread == Shapes::kMaxThreads) return false;
    if (op->transitions.detailed()) add_detail(cls, ev, *op);
    ++bp.bare_events;
    follow_from_here(ev, *op, thread);
    passed(*op, bp, ev.ts_ns);
    return true;
}

[[gnu::always_inline]] inline void Stitcher::go_along(const Event &ev, bool in_order) {
    const Followed &f = followed_[ev.stream];
    Op &op = *f.op;
    const Alongs &with = alongs_of(ev, bare_[ev.cls].slots);
    const Trail &trail = *with.trail;
    alongs_ += trail.count;
    std::uint32_t given = 0;
    if (in_order && op.followed_as == f.as) {
        if (trail.number >= trails_.size()) trails_.resize(trail.number + 1);
        KnownTrail &known = trails_[trail.number];
        const Place from = op.transitions.place();
        const KnownKind::Step step = known.steps[from % known.steps.size()];
        std::int64_t last_ns = ev.ts_ns;
        if (step.from == (from | f.next_by)) {
            last_ns = op.transitions.push_all(step.to, last_ns, with.after_ns);
            ++known.followed;
            given = trail.count;
        } else {
            given = go_step_by_step(op, f.next_by, with, last_ns);
        }
        if (given != 0) ops_.ahead().give(op, last_ns, ev, with, given);
    }
    if (given != trail.count) ops_.ahead().give_back(ev, with, given, trail.count);
}

// What bare() does, of whom the stream's event before was about.
[[gnu::always_inline]] inline const Event *Stitcher::follow(const Event *first, const Event *past, std::int64_t &now_ns) {
    const Followed *const followed = followed_.data();
    const Bare *const bare = bare_.data();
    std::int64_t last_ns = now_ns;
    for (; first != past && hint_of(*first) == Hint::kSame && first->ts_ns >= last_ns && first->ts_ns < ops_.ahead().back_ns(); ++first) {
        const Event &ev = *first;
        last_ns = ev.ts_ns;
        const Followed &f = followed[ev.stream];
        Op &op = *f.op;
        if (op.followed_as != f.as || op.ahead_ns >= last_ns) break;
        KnownKind &kind = *bare[ev.cls].kind;
        if (!op.transitions.push_by(kind, f.next_by, last_ns)) break;
        ++kind.followed;
        if (kind.more) {
            now_ns = last_ns;
            does_more(ev, op);
        }
        if (has_alongs(ev)) go_along(ev, true);
    }
    now_ns = last_ns;
    return first;
}

inline Fate Stitcher::event(BoundClass &cls, const Event &ev, std::uint32_t host, const Lead *lead) {
    BoundPoint *bp = cls.only;
    if (!bp || !(bp->plain ? plain(cls, *bp, ev, host) : bp->begins && short_begins_ && begin(cls, *bp, ev, host, lead))) return any_event(cls, ev, host);
    ++bp->seen;
    return Fate::kTransition;
}

}  // namespace opline
