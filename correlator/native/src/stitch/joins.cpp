// SPDX-License-Identifier: MIT
#include "stitch/joins.hpp"

#include <algorithm>

namespace opline {
namespace {

constexpr std::int64_t kSeveral = -2;
constexpr std::size_t kTakersKept = 1u << 12;

bool of_one_process(const Op &a, const Op &b) { return a.pid == b.pid && a.host == b.host; }

std::uint64_t spaces_carried(const Op &op) {
    std::uint64_t out = 0;
    for (const auto &t : op.transitions) out |= t.spaces;
    return out;
}

// Copies the class, object and target of the op from the other half (`gone`): the server's names are nearer to the data
// than the client's names.
void learn_from(Op &op, const Op &gone) {
    const bool gone_knows_more = op.hard || op.op_class == 0;
    if (gone.op_class != 0 && gone_knows_more) op.op_class = gone.op_class;
    if (op.object.empty()) op.object = gone.object;
    if (gone.has_offset && (!op.has_offset || gone_knows_more)) {
        op.offset_bytes = gone.offset_bytes;
        op.has_offset = true;
    }
    if (gone.has_length && (!op.has_length || gone_knows_more)) {
        op.length_bytes = gone.length_bytes;
        op.has_length = true;
    }
    op.key_text = op.hard ? op.key_text + " " + gone.key_text : gone.key_text + " " + op.key_text;
}

// Moves the transitions of `gone` to the op, or to the op's child.
void take_transitions(Op &op, const Op &gone, std::uint32_t child) {
    if (gone.hard)
        for (auto &t : op.transitions.full())
            if (t.evidence == Evidence::kBegin) t.evidence = Evidence::kKey;
    const auto offset = static_cast<std::uint32_t>(op.transitions.size());
    const auto children = static_cast<std::uint32_t>(op.parents.size());
    for (Transition t : gone.transitions) {
        t.order += offset;
        if (t.evidence == Evidence::kBegin && !gone.hard) t.evidence = Evidence::kKey;
        t.child = t.child == 0 ? child : t.child + children;
        op.transitions.full().push_back(t);
    }
    for (auto parent : gone.parents) op.parents.push_back(parent == 0 ? child : parent + children);
}

}  // namespace

Joins::Joins(Stitching &s, OpLives &lives)
    : s_(s),
      lives_(lives),
      ops_(lives.ops()),
      has_soft_ends_(std::any_of(s.plan.points.begin(), s.plan.points.end(),
                                 [](const PointSpec &p) { return p.role == Role::kSoftEnd; })) {}

// Limits: two begins make two ops; a half is no older than the begin of the whole; a global key names one op only.
bool Joins::can_unite(const Op &a, const Op &b) const {
    if (&a == &b || (a.hard && b.hard) || (a.global_spaces & b.global_spaces) != 0) return false;
    if (a.hard && (a.begin_ns > b.begin_ns || a.state == OpState::kEnded)) return false;
    if (b.hard && (b.begin_ns > a.begin_ns || b.state == OpState::kEnded)) return false;
    return true;
}

// Merges two ops into one; the other ref becomes an alias. With `child` the softer op becomes this child of `a`. The op
// with bios stays: its links are already written.
Op &Joins::unite(Op &a, Op &b, std::uint32_t child, bool proven) {
    const bool b_stays = child == 0 && (b.bios > 0 || (a.bios == 0 && b.hard));
    Op &op = b_stays ? b : a, &gone = b_stays ? a : b;
    const std::uint64_t ref = op_ref(op), gone_ref = op_ref(gone);
    if (proven) op.halves.push_back(spaces_carried(op.hard ? op : gone));
    op.halves.insert(op.halves.end(), gone.halves.begin(), gone.halves.end());

    const auto offset = static_cast<std::uint32_t>(op.transitions.size());
    const auto children = static_cast<std::uint32_t>(op.parents.size());
    take_transitions(op, gone, child);
    op.take_batches(gone, offset);
    op.requests.insert(op.requests.end(), gone.requests.begin(), gone.requests.end());
    op.keys.insert(op.keys.end(), gone.keys.begin(), gone.keys.end());
    op.lent.insert(op.lent.end(), gone.lent.begin(), gone.lent.end());
    op.waits.insert(op.waits.end(), gone.waits.begin(), gone.waits.end());
    op.bios += gone.bios;
    op.take_io(gone);
    if (op.program_run != 0) s_.population.begun(op.serial, true);
    if (gone.io_open) lives_.take_window(op, ref, gone_ref);
    if (child == 0) {
        op.global_spaces |= gone.global_spaces;
        learn_from(op, gone);
        take_span(op, gone, offset);
    }

    // A waiter for one of the halves waits for the whole.
    if (Op *partner = ops_.find(gone.partner); partner && partner != &op && partner != &gone) {
        if (op.partner == 0) link_partners(op, *partner, gone.partner_sure);
        else partner->partner = 0;
    }
    if (ops_.find(op.partner) == &gone) op.partner = 0;

    op.aliases.insert(op.aliases.end(), gone.aliases.begin(), gone.aliases.end());
    op.aliases.push_back(gone_ref);
    if (gone.bios == 0) ops_.take_back_number(gone);
    gone.reset(nullptr);
    gone.state = OpState::kAlias;
    gone.alias_of = ref;
    gone.alias_child = child;
    gone.alias_children_base = children;
    return op;
}

// Begin and end of the united op. `offset`: index of gone's first transition among the op's transitions.
void Joins::take_span(Op &op, const Op &gone, std::uint32_t offset) {
    const bool ended = op.hard     ? op.state == OpState::kEnded
                       : gone.hard ? gone.state == OpState::kEnded
                                   : op.state == OpState::kEnded || gone.state == OpState::kEnded;
    if (gone.hard || (!op.hard && gone.begin_ns < op.begin_ns)) {
        op.begin_ns = gone.begin_ns;
        op.host = gone.host;
        op.pid = gone.pid;
    }
    if (gone.has_soft_end && (!op.has_soft_end || gone.soft_end_ns >= op.soft_end_ns)) {
        op.has_soft_end = true;
        op.soft_end_ns = gone.soft_end_ns;
        op.soft_end_order = gone.soft_end_order + offset;
    }
    op.hard = op.hard || gone.hard;
    op.state = ended ? OpState::kEnded : OpState::kOpen;
    if (ended && !op.hard) lives_.end_op(op, op.soft_end_ns, op.soft_end_order);
}

void Joins::wait_under(Op &op, const Key &key) {
    waiting_[key].push_back(op_ref(op));
    op.waits.push_back(key);
}

void Joins::stop_waiting(Op &op, const Key &key) {
    auto *refs = waiting_.find(key);
    if (!refs) return;
    refs->erase(std::remove_if(refs->begin(), refs->end(), [&](std::uint64_t r) { return ops_.find(r) == &op; }),
                refs->end());
    if (refs->empty()) waiting_.erase(key);
}

void Joins::stop_waiting_at_all(Op &op) {
    for (const auto &key : op.waits) stop_waiting(op, key);
    op.waits.clear();
}

// nullptr: no op waits under the key, or several ops.
Op *Joins::waits_alone(const Key &key) const {
    const auto *refs = waiting_.find(key);
    return refs && refs->size() == 1 ? ops_.find(refs->front()) : nullptr;
}

// The ops waiting under a key that could be one with `op`. `op_waits`: `op` itself waits, already joined by another
// key.
Joins::Waiters Joins::who_waits(const std::vector<std::uint64_t> &refs, const Op &op, std::uint32_t child) {
    Waiters found;
    const Op *partner = ops_.find(op.partner);
    for (auto ref : refs) {
        Op *waits = ops_.find(ref);
        if (waits == &op) {
            found.op_waits = true;
            return found;
        }
        if (!waits || !(can_unite(*waits, op) || (child != 0 && !waits->hard))) continue;
        if (!found.first) found.first = waits;
        else found.several = true;
        const Op &first = *found.first;
        found.one_thread =
            found.one_thread && !waits->order_unsure && waits->transitions.first_tid() == first.transitions.first_tid();
        found.one_process = found.one_process && !waits->of_several && of_one_process(*waits, first);
        if (waits == partner) found.ordered = waits;
    }
    if (found.first && partner) found.one_process = found.one_process && of_one_process(*found.first, *partner);
    return found;
}

// A name used by several processes does not identify the owner.
Op &Joins::leave_open(Op &op, const std::vector<std::uint64_t> &refs) {
    for (auto ref : refs)
        if (Op *waits = ops_.find(ref)) waits->of_several = true;
    if (!op.of_several) ++s_.counts.ambiguous_halves;
    op.of_several = true;
    return op;
}

// Whether order leaves no choice among the waiting ops: one thread made all of them, and one thread takes all of them.
bool Joins::order_is_sure(const Key &key, const Waiters &waiting, std::int64_t tid,
                          const std::vector<std::uint64_t> &refs) {
    if (takers_.size() >= kTakersKept) takers_.clear();
    auto [taker, added] = takers_.insert(key);
    if (added) *taker = tid;
    else if (*taker != tid) *taker = kSeveral;
    if (waiting.one_thread && !(waiting.several && *taker == kSeveral)) return true;
    for (auto ref : refs)
        if (Op *waits = ops_.find(ref)) waits->order_unsure = true;
    return false;
}

// Meets the op that waits longest under the key. Joins both at once; or, by order only, marks both as partners and
// joins them after the end of the waiting op (until then a proven joint can part them). Returns the op with `op` as a
// part. With `child` the waiting op becomes a part of this child of `op`. `sure`: order leaves no choice: one op waited
// alone, or one thread made all waiting ops and one thread takes them.
Op &Joins::meet(Op &op, std::uint32_t child, const Key &key, bool by_order, std::int64_t tid, bool &sure) {
    auto *refs = waiting_.find(key);
    if (!refs) return op;
    const Waiters waiting = who_waits(*refs, op, child);
    if (waiting.op_waits) {
        stop_waiting(op, key);
        sure = true;
        return op;
    }
    Op *first = waiting.first;
    if (!first) return op;
    if (!by_order && child == 0 && !waiting.one_process) {  // order names the half, if both sides agree
        if (!waiting.ordered) return leave_open(op, *refs);
        first = waiting.ordered;
    }
    const bool one_thread = by_order && order_is_sure(key, waiting, tid, *refs);
    stop_waiting(*first, key);
    if (child != 0) {
        sure = true;
        ++s_.counts.halves_joined;
        return unite(op, *first, child, true);
    }
    if (by_order) {
        if (op.partner == 0 && first->partner == 0) link_partners(op, *first, one_thread);
        sure = one_thread;
        return op;
    }
    // Order may have given other partners to both halves. These two partners now belong together.
    Op *of_op = ops_.find(op.partner), *of_first = ops_.find(first->partner);
    const bool was_sure = op.partner_sure && first->partner_sure;
    if (of_op && of_op != first) {
        part(op);
        part(*first);
        ++s_.counts.order_mismatches;
        if (of_first && can_unite(*of_op, *of_first)) link_partners(*of_op, *of_first, was_sure);
    } else if (of_op) {
        part(op);
    }
    sure = true;
    ++s_.counts.halves_joined;
    return unite(*first, op, 0, true);
}

void Joins::link_partners(Op &a, Op &b, bool sure) {
    a.partner = op_ref(b);
    b.partner = op_ref(a);
    a.partner_sure = b.partner_sure = sure;
}

void Joins::part(Op &op) {
    if (Op *partner = ops_.find(op.partner)) partner->partner = 0;
    op.partner = 0;
}

// Joins the partner found by order, as nothing contradicted the order. A partner without an end by now is a
// contradiction.
Op &Joins::join_partner(Op &op, std::int64_t now_ns) {
    Op *partner = ops_.find(op.partner);
    if (!partner) return op;
    const bool sure = op.partner_sure;
    part(op);
    const bool in_time = partner->has_soft_end ? partner->soft_end_ns <= now_ns : !has_soft_ends_;
    if (!in_time || !can_unite(op, *partner)) {
        ++s_.counts.order_mismatches;
        return op;
    }
    ++s_.counts.halves_joined_by_order;
    return unite(op, *partner, 0, sure);
}

}  // namespace opline
