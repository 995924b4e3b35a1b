// SPDX-License-Identifier: MIT
// Which open bio or request an event is about: by its pointer, or by device, sector, length and direction.
// Where two fit equally well, one wins (the first in, where nothing else was learned) and both are marked ambiguous.
#include <algorithm>

#include "block/engine.hpp"

namespace opline::block_model {

namespace {
constexpr int kInHands = 4;  // in the rank of a request that its thread still has
}  // namespace

// Where another request fits as well: this one's completion is lost. It was overtaken by more than a device reorders,
// or who waits for it has gone on.
bool Engine::presumed_lost(const ReqRec &rec) {
    if (!rec.in_device) return false;
    const Device &d = *rec.device;
    return d.completions - rec.dev_completions > 64 + 8 * std::uint64_t{d.most_in_flight} || left_ns(rec) != kNoTime;
}

// The request of that place with the highest rank (0: does not fit, -1: would at another step); of equal ones as `tie`
// says. Ranks that differ in the lowest bit only are a tie that this bit decides: all are marked ambiguous unless
// tie_decides. So is one beside a marked one, which may have taken its step.
template <class Rank>
Found Engine::choose(const Place &place, Rank rank, bool tie_decides, bool mark, Tie tie) {
    Found found;
    int best = 0;
    unsigned seen = 0, fits = 0;
    Index stale = kNil;
    bool tainted = false;
    const int shift = tie_decides ? 0 : 1;
    const Index first = request_starts_.first(place);
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
            if (stale == kNil) stale = i;
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
    if (found.index == kNil) {
        found.index = stale;
        return found;
    }
    if (stale != kNil) {
        ++counts.presumed_lost;
        const ReqRec &lost = requests_[stale];
        if (const auto at_ns = left_ns(lost); at_ns != kNoTime)
            missed(lost.r.dev, lost.r.issue_ns, std::max(lost.r.issue_ns, at_ns));
        close_request(stale);
    }
    if (fits < 2 && !tainted) return found;
    found.ambiguous = true;
    if (!mark) return found;
    requests_[found.index].r.ambiguous = true;
    seen = 0;
    for (Index i = request_starts_.first(place); i != kNil && seen < kChainLimit;
         i = requests_[i].by_start.next, ++seen)
        if (const int r = rank(requests_[i]); r > 0 && (r >> shift) == (best >> shift)) requests_[i].r.ambiguous = true;
    return found;
}

// A bio of the event's place without a request. exact: of that length; else also a longer one, to be cut.
Found Engine::open_bio(const BlockEvent &e, std::uint32_t nr_sectors, bool exact) {
    Found found;
    if (const std::uint64_t pointer = bio_of(e)) {
        if (Index *known = by_bio_.find(pointer)) {
            const BioRec &rec = bios_[*known];
            const bool waits = rec.request == kNil && !rec.finished && !rec.mapped;
            if (waits && rec.bio.dev == e.dev && rec.bio.sector == e.sector) return {*known, false, true};
        }
    }
    // G, M and F come in the thread that queued the bio; a thread queues its next one after that. So an older one of
    // the same thread, place and length has lost the event that took it.
    Index own = kNil, other = kNil;
    unsigned others = 0, seen = 0;
    for (Index i = bio_places_.first({e.dev, e.sector}); i != kNil && seen < kChainLimit; ++seen) {
        const Index at = i;
        const BioRec &rec = bios_[at];
        i = rec.place.next;
        if (rec.mapped || rec.finished || !same_direction(rec.bio.rwbs, e.rwbs)) continue;
        if (exact ? rec.bio.nr_sectors != nr_sectors : rec.bio.nr_sectors < nr_sectors) continue;
        if (bio_of(e) && rec.bio.pointer && rec.bio.pointer != e.bio) continue;
        if (rec.bio.tid == e.tid && e.tid >= 0) {
            if (own != kNil && exact && nr_sectors > 0) {
                missed(e.dev, bios_[own].bio.queue_ns != kNoTime ? bios_[own].bio.queue_ns : e.ts_ns, e.ts_ns);
                ++counts.lost_bios;
                close_bio(own);
            }
            if (own == kNil || exact) own = at;
        } else {
            if (other == kNil) other = at;
            ++others;
        }
    }
    found.index = own != kNil ? own : other;
    found.ambiguous = own == kNil && others > 1;
    if (found.ambiguous)
        for (Index i = bio_places_.first({e.dev, e.sector}); i != kNil; i = bios_[i].place.next)
            if (!bios_[i].mapped && bios_[i].bio.nr_sectors == nr_sectors) bios_[i].ambiguous = true;
    return found;
}

// The bio that the event's request (or merge) is made of; a longer one is cut (its split was not seen); one that was
// remapped here without being queued again (md) is made now.
Found Engine::bio_for_request(const BlockEvent &e) {
    Found found = open_bio(e, e.nr_sectors, true);
    if (found && bios_[found.index].bio.nr_sectors == e.nr_sectors) return found;
    if (!found && e.nr_sectors > 0) found = open_bio(e, e.nr_sectors, false);
    if (found) {
        const Bio &b = bios_[found.index].bio;
        if (e.nr_sectors > 0 && b.nr_sectors > e.nr_sectors) {
            const std::uint64_t pointer = b.pointer;
            check_split(e);
            const Index rest = cut_bio(e, found.index, b.sector + e.nr_sectors);
            if (pointers_ && e.bio && pointer == e.bio) {  // found by its pointer: the front part keeps it
                bios_[rest].bio.pointer = 0;
                set_bio_pointer(found.index, pointer);
            }
        }
        return found;
    }
    if (const Index way = remap_to(e); way != kNil && e.nr_sectors > 0) {
        found.index = new_bio(e, e.sector, e.nr_sectors, remaps_[way].parent, kNil);
        found.ambiguous = remaps_[way].ambiguous;
        set_bio_pointer(found.index, e.bio);
        drop_remap(way);
    }
    return found;
}

// The request that a bio is merged to: it ends where the bio begins (back), or begins where the bio ends (front), and
// was not issued yet.
Found Engine::merge_target(const BlockEvent &e, bool front) {
    auto rank = [&](const ReqRec &q) {
        if (q.step != Step::kAllocated && q.step != Step::kInserted) return 0;
        if (q.is_flush || !same_direction(q.op, e.rwbs) || (front && q.start == e.sector)) return 0;
        // A request that is not inserted yet is in its own thread's plug.
        return 2 + (q.step == Step::kAllocated && q.r.queue_tid == e.tid ? 1 : 0);
    };
    const bool mark = !has_rq_bio_ || e.kind == BlockKind::kRqMerge;  // else the bio's pointer says it at the issue
    if (front) return choose({e.dev, e.sector + e.nr_sectors}, rank, true, mark);
    keep_ends();
    Found found;
    int best = 0;
    unsigned seen = 0;
    for (Index i = request_ends_.first({e.dev, e.sector}); i != kNil && seen < kChainLimit;
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

bool Engine::covers(const ReqRec &rec, const BlockEvent &e) const {
    if (rec.r.dev != e.dev) return false;
    const bool anywhere = rec.is_flush || rec.r.kind == IoKind::kOther || rec.r.kind == IoKind::kWriteZeroes;
    if (anywhere || e.nr_sectors == 0) return true;
    return e.sector < rec.start + std::max<std::uint32_t>(rec.remaining, 1) && rec.start < e.sector + e.nr_sectors;
}

// The request of I, D, R, C or rq_merge, none of them of a flush.
Found Engine::request_for(const BlockEvent &e, BlockKind kind) {
    const std::uint64_t rq = rq_of(e);
    if (!rq) return request_at(e, kind);
    Index by_rq = kNil, by_bio = kNil;
    if (Index *known = by_rq_.find(rq)) by_rq = *known;
    if (const std::uint64_t bio = bio_of(e))
        if (Index *known = by_bio_.find(bio); known && bios_[*known].request != kNil) by_bio = bios_[*known].request;
    if (by_bio != kNil && by_bio != by_rq && (requests_[by_bio].r.pointer != 0 || !covers(requests_[by_bio], e)))
        by_bio = kNil;  // of another request: the bio's pointer is an old one
    if (by_rq != kNil && by_bio == kNil && covers(requests_[by_rq], e)) {
        const ReqRec &rec = requests_[by_rq];
        const bool begins = kind == BlockKind::kRqInsert || kind == BlockKind::kRqIssue;
        if (!(begins && rec.step == Step::kDataDone) && !(e.nr_sectors > 0 && rec.step == Step::kDataDone))
            return {by_rq, false, true};
    }
    if (by_rq != kNil && by_bio == by_rq) return {by_rq, false, true};
    if (by_rq != kNil) reuse(by_rq);  // its pointer is another request's now
    if (by_bio != kNil) {
        set_pointer(by_bio, rq);
        return {by_bio, false, true};
    }
    Found found = request_at(e, kind);
    if (found) set_pointer(found.index, rq);
    return found;
}

// Whether the event at the request's place can be about it.
bool Engine::can_be_about(const BlockEvent &e, const ReqRec &q) const {
    const std::uint64_t rq = rq_of(e), bio = bio_of(e);
    if (q.is_flush || q.step == Step::kDataDone || !same_direction(q.op, e.rwbs)) return false;
    if (rq != 0 && q.r.pointer != 0 && q.r.pointer != rq) return false;
    const std::uint64_t first = bio == 0 || q.bios.empty() ? 0 : bios_[q.bios.front()].bio.pointer;
    return first == 0 || first == bio;
}

Found Engine::request_at(const BlockEvent &e, BlockKind kind) {
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
            true, true, inserts_.last_first > inserts_.first_first ? Tie::kLastOfPlug : Tie::kFirst);
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
            false, true, issues_.last_first >= issues_.first_first ? Tie::kLastOfPlug : Tie::kFirst);
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
        Device &d = device(e.dev);
        const bool by_cpu = e.cpu != kNoCpu && d.cpu_kept >= kLearned && !d.cpu_changed;
        const Tie tie = d.last_first > d.first_first ? Tie::kIssuedLast : Tie::kIssuedFirst;
        const Found found = choose(
            place,
            [&](const ReqRec &q) {
                if (!fits(q) || q.remaining < e.nr_sectors) return 0;
                return (q.step == Step::kIssued ? 16 : 0) + (q.remaining == e.nr_sectors ? 8 : 4) +
                       (by_cpu && q.r.issue_cpu == e.cpu ? 2 : 0);
            },
            false, true, tie);
        if (found && !found.ambiguous) note_order(d, place, found.index);
        return found;
    }
    }
}

// A request completes that nothing else of its place can be taken for: before or after it was its turn.
void Engine::note_order(Device &d, const Place &place, Index completed) {
    const ReqRec &rec = requests_[completed];
    if (!rec.in_device) return;
    unsigned seen = 0;
    for (Index i = request_starts_.first(place); i != kNil && seen < kChainLimit; ++seen) {
        const ReqRec &other = requests_[i];
        i = other.by_start.next;
        if (&other != &rec && other.in_device && !presumed_lost(other))
            ++(other.issue_ordinal < rec.issue_ordinal ? d.last_first : d.first_first);
    }
}

// Where the first bio lies that begins behind the event's sector and within its length. Of an event that claims more
// sectors than bios are open, the bios are looked through instead (a damaged one can claim 2^32).
std::uint64_t Engine::next_bio_behind(const BlockEvent &e) const {
    const auto fits = [&](Index i, std::uint64_t behind) {
        if (bios_[i].mapped || !same_direction(bios_[i].bio.rwbs, e.rwbs)) return false;
        return bios_[i].bio.nr_sectors > 0 && bios_[i].bio.nr_sectors <= e.nr_sectors - behind;
    };
    if (e.nr_sectors <= bios_.live()) {
        for (std::uint32_t n = 1; n < e.nr_sectors; ++n)
            if (const Index i = bio_places_.first({e.dev, e.sector + n}); i != kNil && fits(i, n)) return e.sector + n;
        return kNoSector;
    }
    std::uint64_t nearest = e.nr_sectors;
    for (Index i = bio_age_.head; i != kNil; i = bios_[i].age.next) {
        const BioRec &rec = bios_[i];
        const std::uint64_t behind = rec.bio.sector - e.sector;  // beyond all lengths where it lies before
        if (!rec.open_place || rec.bio.dev != e.dev || behind == 0 || behind >= nearest || !fits(i, behind)) continue;
        if (bio_places_.first({e.dev, rec.bio.sector}) == i) nearest = behind;
    }
    return nearest < e.nr_sectors ? e.sector + nearest : kNoSector;
}

}  // namespace opline::block_model
