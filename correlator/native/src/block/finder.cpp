// SPDX-License-Identifier: MIT
// Where two fit equally well, one wins (the first in, where nothing else was learned) and both are marked ambiguous.
#include "block/finder.hpp"

#include <algorithm>

namespace opline::block_model {
namespace {

constexpr int kInHands = 4;  // in the rank of a request that its thread still has

}  // namespace

// Where another request fits as well: this one's completion is lost. It was overtaken by more than a device reorders,
// or who waits for it has gone on.
bool Finder::presumed_lost(const ReqRec &rec) {
    if (!rec.in_device && rec.step != Step::kRequeued) return false;
    const Device &d = *rec.device;
    return d.completions - rec.dev_completions > 64 + 8 * std::uint64_t{d.most_in_flight} ||
           evidence_.left_ns(rec) != kNoTime;
}

// The request of that place with the highest rank (0: does not fit, -1: would at another step); of equal ones as `tie`
// says. Ranks that differ in the lowest bit only are a tie that this bit decides: all are marked ambiguous unless
// tie_decides. So is one beside a marked one, which may have taken its step.
template <class Rank>
Found Finder::choose(const Place &place, Rank rank, bool tie_decides, bool mark, Tie tie) {
    Found found;
    int best = 0, best_stale = 0;
    unsigned seen = 0, fits = 0;
    Index stale = kNil;
    bool tainted = false;
    const int shift = tie_decides ? 0 : 1;
    const Index first = requests_.places().first(place);
    if (first == kNil) return found;
    if (requests_[first].by_start.next == kNil) {  // no other fits as well
        if (rank(requests_[first]) > 0) found.index = first;
        return found;
    }
    for (Index i = first; i != kNil && seen < kChainLimit; i = requests_[i].by_start.next, ++seen) {
        const int r = rank(requests_[i]);
        tainted = tainted || (r < 0 && requests_[i].r.ambiguous);
        if (r <= 0) continue;
        if (presumed_lost(requests_[i])) {
            if (stale == kNil || (r >> shift) > (best_stale >> shift)) {
                stale = i;
                best_stale = r;
            }
            continue;
        }
        if ((r >> shift) > (best >> shift)) fits = 0;
        if ((r >> shift) == (best >> shift) || r > best) ++fits;
        const auto wins_tie = [&] {  // against the one found so far
            if (tie == Tie::kFirst) return false;
            if (tie == Tie::kLastOfPlug) return (r & kInHands) != 0;
            const std::uint64_t mine = requests_[i].issue_ordinal, best_one = requests_[found.index].issue_ordinal;
            return tie == Tie::kIssuedFirst ? mine < best_one : mine > best_one;
        };
        if (r > best || (r == best && wins_tie())) {
            best = r;
            found.index = i;
        }
    }
    if (found.index == kNil || (best_stale >> shift) > (best >> shift)) {  // late, but no other fits as well
        found.index = stale;
        return found;
    }
    if ((best_stale >> shift) < (best >> shift)) stale = kNil;  // late, and not concerned
    // Its own step may have been taken for another one's, whose step this is.
    tainted = tainted || (stale != kNil && requests_[stale].r.ambiguous);
    if (stale != kNil && requests_[stale].step != Step::kRequeued) {  // one that was requeued may still come back
        ++m_.counts.presumed_lost;
        ReqRec &lost = requests_[stale];
        if (const auto at_ns = evidence_.left_ns(lost); at_ns != kNoTime && !evidence_.is_unseen(lost))
            evidence_.missed(lost.r.dev, lost.r.issue_ns, std::max(lost.r.issue_ns, at_ns));
        requests_.close(stale);
    }
    if (fits < 2 && !tainted) return found;
    found.ambiguous = true;
    found.tainted = tainted;
    if (!mark) return found;
    requests_[found.index].r.ambiguous = true;
    seen = 0;
    for (Index i = requests_.places().first(place); i != kNil && seen < kChainLimit;
         i = requests_[i].by_start.next, ++seen)
        if (const int r = rank(requests_[i]); r > 0 && (r >> shift) == (best >> shift)) requests_[i].r.ambiguous = true;
    return found;
}

// The request that a bio is merged to: it ends where the bio begins (back), or begins where the bio ends (front), and
// was not issued yet.
Found Finder::merge_target(const BlockEvent &e, bool front, bool mark) {
    auto rank = [&](const ReqRec &q) {
        if (q.step != Step::kAllocated && q.step != Step::kInserted) return 0;
        if (q.is_flush || !same_direction(q.op, e.rwbs) || (front && q.start == e.sector)) return 0;
        // A request that is not inserted yet is in its own thread's plug.
        return 2 + (q.step == Step::kAllocated && q.r.queue_tid == e.tid ? 1 : 0);
    };
    if (front) return choose({e.dev, e.sector + e.nr_sectors}, rank, true, mark);
    Found found;
    int best = 0;
    unsigned seen = 0;
    for (Index i = requests_.places().first_ending({e.dev, e.sector}); i != kNil && seen < kChainLimit;
         i = requests_[i].by_end.next, ++seen) {
        const int r = rank(requests_[i]);
        if (r > 0 && r == best) {
            found.ambiguous = true;
            requests_[i].r.ambiguous = requests_[i].r.ambiguous || mark;
        }
        if (r <= best) continue;
        found = {i, false, false};
        best = r;
    }
    if (found.ambiguous && mark) requests_[found.index].r.ambiguous = true;
    return found;
}

bool Finder::covers(const ReqRec &rec, const BlockEvent &e) const {
    if (rec.r.dev != e.dev) return false;
    const bool anywhere = rec.is_flush || rec.r.kind == IoKind::kOther || rec.r.kind == IoKind::kWriteZeroes;
    if (anywhere || e.nr_sectors == 0) return true;
    return e.sector < rec.start + std::max<std::uint32_t>(rec.remaining, 1) && rec.start < e.sector + e.nr_sectors;
}

// The request of I, D, R, C or rq_merge, none of them of a flush.
Found Finder::request_for(const BlockEvent &e, BlockKind kind) {
    const std::uint64_t rq = m_.rq_of(e);
    if (!rq) return request_at(e, kind);
    Index by_rq = kNil, by_bio = kNil;
    if (Index *known = requests_.by_pointer(rq)) by_rq = *known;
    if (const std::uint64_t bio = m_.bio_of(e))
        if (Index *known = bios_.by_pointer(bio); known && bios_[*known].request != kNil)
            by_bio = bios_[*known].request;
    if (by_bio != kNil && by_bio != by_rq && (requests_[by_bio].r.pointer != 0 || !covers(requests_[by_bio], e)))
        by_bio = kNil;  // of another request: the bio's pointer is an old one
    if (by_rq != kNil && by_bio == kNil && covers(requests_[by_rq], e)) {
        const ReqRec &rec = requests_[by_rq];
        const bool begins = kind == BlockKind::kRqInsert || kind == BlockKind::kRqIssue;
        if (!(begins && rec.step == Step::kDataDone) && !(e.nr_sectors > 0 && rec.step == Step::kDataDone))
            return {by_rq, false, true};
    }
    if (by_rq != kNil && by_bio == by_rq) return {by_rq, false, true};
    if (by_rq != kNil) requests_.reuse(by_rq);  // its pointer is another request's now
    if (by_bio != kNil) {
        requests_.set_pointer(by_bio, rq);
        return {by_bio, false, true};
    }
    Found found = request_at(e, kind);
    if (found) requests_.set_pointer(found.index, rq);
    return found;
}

// Whether the event at the request's place can be about it.
bool Finder::can_be_about(const BlockEvent &e, const ReqRec &q) const {
    const std::uint64_t rq = m_.rq_of(e), bio = m_.bio_of(e);
    if (q.is_flush || q.step == Step::kDataDone || !same_direction(q.op, e.rwbs)) return false;
    if (rq != 0 && q.r.pointer != 0 && q.r.pointer != rq) return false;
    const std::uint64_t first = bio == 0 || q.bios.empty() ? 0 : bios_[q.bios.front()].bio.pointer;
    return first == 0 || first == bio;
}

int Finder::rank_to_complete(const BlockEvent &e, const ReqRec &q) const {
    if (q.completed || !can_be_about(e, q) || q.remaining < e.nr_sectors) return 0;
    return (q.step == Step::kIssued ? 16 : 0) + (q.remaining == e.nr_sectors ? 8 : 4) +
           (e.cpu != kNoCpu && q.device->queues.never_completes(q.r.issue_cpu, e.cpu) ? 0 : 2);
}

void Finder::fit_as_well(const BlockEvent &e, Index best, std::vector<Index> &found) {
    found.clear();
    const int rank = rank_to_complete(e, requests_[best]);
    unsigned seen = 0;
    for (Index i = requests_.places().first({e.dev, e.sector}); i != kNil && seen < kChainLimit;
         i = requests_[i].by_start.next, ++seen)
        if (rank_to_complete(e, requests_[i]) == rank && !presumed_lost(requests_[i])) found.push_back(i);
}

Found Finder::request_at(const BlockEvent &e, BlockKind kind) {
    const auto fits = [&](const ReqRec &q) { return can_be_about(e, q); };
    const auto own = [&](const ReqRec &q) { return e.tid >= 0 && q.r.queue_tid == e.tid ? 1 : 0; };
    const Place place{e.dev, e.sector};
    switch (kind) {
    case BlockKind::kRqInsert:
    case BlockKind::kRqMerge:
        // Inserted by the thread that allocated it, out of its plug.
        return choose(
            place,
            [&](const ReqRec &q) {
                if (!fits(q)) return 0;
                if (q.step == Step::kIssued) return -1;
                const int length = q.remaining == e.nr_sectors ? 8 : 0;
                return length + (q.step == Step::kInserted && kind == BlockKind::kRqInsert ? 2 : kInHands) + own(q);
            },
            true, true, inserts_.last_in_first_out() ? Tie::kLastOfPlug : Tie::kFirst);
    case BlockKind::kRqIssue:
        // What was not inserted anywhere is in its thread's hands; what was, any thread may issue.
        return choose(
            place,
            [&](const ReqRec &q) {
                if (!fits(q)) return 0;
                if (q.step == Step::kIssued) return -1;
                const int length = q.remaining == e.nr_sectors ? 8 : 0;
                return length + (q.step == Step::kAllocated && own(q) ? kInHands : 2) +
                       (q.step != Step::kAllocated || own(q));
            },
            false, true, issues_.last_in_first_out() || issues_.nothing_known() ? Tie::kLastOfPlug : Tie::kFirst);
    case BlockKind::kRqRequeue:
        return choose(
            place,
            [&](const ReqRec &q) {
                if (!fits(q)) return 0;
                if (q.step == Step::kRequeued) return -1;
                return (q.step == Step::kIssued ? 8 : 0) + (q.remaining == e.nr_sectors ? 4 : 2);
            },
            false);
    default: {
        const bool last = m_.devices.of(e.dev).order.last_in_first_out();
        const auto rank = [&](const ReqRec &q) { return rank_to_complete(e, q); };
        const Found found = choose(place, rank, false, false, last ? Tie::kIssuedLast : Tie::kIssuedFirst);
        if (found && !found.ambiguous) note_order(place, found.index);
        return found;
    }
    }
}

// A request completes that nothing else of its place can be taken for: before or after it was its turn.
void Finder::note_order(const Place &place, Index completed) {
    const ReqRec &rec = requests_[completed];
    if (!rec.in_device) return;
    unsigned seen = 0;
    for (Index i = requests_.places().first(place); i != kNil && seen < kChainLimit; ++seen) {
        const ReqRec &other = requests_[i];
        i = other.by_start.next;
        if (&other == &rec || !other.in_device || other.completed || presumed_lost(other)) continue;
        CompletionOrder &order = rec.device->order;
        other.issue_ordinal < rec.issue_ordinal ? order.note_later_first() : order.note_earlier_first();
    }
}

}  // namespace opline::block_model
