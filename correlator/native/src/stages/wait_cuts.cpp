// SPDX-License-Identifier: MIT
// Waits cut by what the thread that ends them did meanwhile for others: for the batch before, or for other ops.
#include "stages/wait_cuts.hpp"

#include <algorithm>

#include "op/op_table.hpp"

namespace opline {
namespace {

constexpr std::ptrdiff_t kMostPieces = 1024;  // of one wait; a wait with more becomes one piece, from first to last

bool is_mine(const Op &op, std::uint64_t ref) {
    return ref == op_ref(op) || std::find(op.aliases.begin(), op.aliases.end(), ref) != op.aliases.end();
}

}  // namespace

// nullptr: no batch's event ends the wait.
const Batch *WaitCuts::batch_of(const Attribution &a, const Transition &arrives) {
    const Batch *found = nullptr;
    for (const auto &m : a.op->batches) {
        const Batch &batch = *m.batch;
        const bool its_work = static_cast<std::int64_t>(batch.serial) == arrives.batch;
        if (its_work || (arrives.batch < 0 && arrives.tid == batch.tid)) found = &batch;
    }
    return found;
}

// The last piece comes first.
void WaitCuts::add_piece(Attribution &a, const CutWait &w, const Piece &p) {
    if (p.begin_ns == p.end_ns) return;
    StageCut *next = p.end_ns == w.end_ns || a.stages.empty() ? nullptr : &a.stages.back();
    if (p.goes_on && next && next->stage == p.stage) {
        next->from = p.from;
        next->duration_ns += next->begin_ns - p.begin_ns;
        next->begin_ns = p.begin_ns;
        return;
    }
    a.stages.push_back({p.stage, w.kind, p.from, p.to, p.begin_ns, p.end_ns - p.begin_ns, w.tid, 0, -1, -1, false});
}

bool WaitCuts::by_batch(Attribution &a, const CutWait &w, const Batch &batch) {
    const auto &before = batch.before;
    std::size_t first = 0, last = before.size();  // points inside the wait
    while (first < before.size() && before[first].first <= w.begin_ns) ++first;
    while (last > first && before[last - 1].first >= w.end_ns) --last;
    if (first == last) return false;
    add_piece(a, w, {w.stage, before[last - 1].second, w.to, before[last - 1].first, w.end_ns});
    for (std::size_t i = last; i-- > first;) {
        const auto [at_ns, point] = before[i];
        const std::uint32_t stage = i > 0 ? names_.behind_name(w.stage, before[i - 1].second, point, w.stage) : w.stage;
        if (i == first) add_piece(a, w, {stage, w.from, point, w.begin_ns, at_ns});
        else add_piece(a, w, {stage, before[i - 1].second, point, before[i - 1].first, at_ns});
    }
    return true;
}

// The name of the piece between two successive points of a thread. The time before a return from waiting stays `wait`:
// no more is known.
std::uint32_t WaitCuts::piece_name(const Op &op, std::uint32_t wait, const ThreadPoint &p, const ThreadPoint &next) {
    const StageNames::OfWait &names = names_.of_wait(wait);
    if (next.worked_for == ThreadPoint::kNobody) return wait;
    if (p.worked_for == ThreadPoint::kNobody) return names.awake;
    const bool mine = is_mine(op, p.worked_for);
    if (mine != is_mine(op, next.worked_for) || (!mine && p.worked_for != next.worked_for)) return names.between;
    return mine ? wait : names_.behind_name(wait, p.point, next.point, names.others);
}

// The thread's work before the first point in the wait is known in two cases: the thread was already at this op, or the
// thread tells when it waits.
bool WaitCuts::by_thread(Attribution &a, const CutWait &w) {
    const std::uint32_t host = hosts_.of_thread(w.tid, a.op->host);
    const ThreadPoints::Thread *thread = w.tid > 0 ? thread_points_.of(host, w.tid) : nullptr;
    if (!thread) return false;
    const ThreadPoints::Points &all = thread->points;
    const auto earlier = [](const ThreadPoint &p, std::int64_t at) { return p.ts_ns < at; };
    const auto first = std::lower_bound(all.begin(), all.end(), w.begin_ns + 1, earlier);
    const auto last = std::lower_bound(first, all.end(), w.end_ns, earlier);
    auto arrival = last;
    while (arrival != all.end() && arrival->ts_ns == w.end_ns && !is_mine(*a.op, arrival->worked_for)) ++arrival;
    // Without the arrival, this is another thread with the same number, on another host.
    if (first == last || arrival == all.end() || arrival->ts_ns != w.end_ns) return false;
    const std::uint32_t wait = w.stage;
    auto add = [&](std::uint32_t stage, const ThreadPoint &from, std::uint32_t to, std::int64_t end_ns) {
        add_piece(a, w, {stage, from.point, to, from.ts_ns, end_ns, true});
    };
    const auto until = std::prev(last);  // the thread's last point before the wait
    add(piece_name(*a.op, wait, *until, *arrival), *until, w.to, w.end_ns);
    if (last - first > kMostPieces) {
        add(names_.of_wait(wait).others, *first, until->point, until->ts_ns);
    } else {
        for (auto p = until; p != first; --p)
            add(piece_name(*a.op, wait, *std::prev(p), *p), *std::prev(p), p->point, p->ts_ns);
    }
    std::uint32_t stage = wait;
    if (first != all.begin()) {
        const ThreadPoint &before = *std::prev(first);
        const bool at_it = before.worked_for == first->worked_for && !is_mine(*a.op, first->worked_for);
        if (at_it || thread->says_awake) stage = piece_name(*a.op, wait, before, *first);
    }
    add_piece(a, w, {stage, w.from, first->point, w.begin_ns, first->ts_ns, true});
    return true;
}

}  // namespace opline
