// SPDX-License-Identifier: MIT
#include "block/flushes.hpp"

namespace opline::block_model {

// A pass-through command has no bio of a file and begins at its issue. Kernels before 4.11 write R or W for its
// direction.
Fate Passthrough::begin(Index i) {
    ReqRec &rec = requests_[i];
    if (rec.r.kind == IoKind::kRead || rec.r.kind == IoKind::kWrite) rec.r.kind = IoKind::kOther;
    rec.listed = true;
    enlist(rec.device->passthrough, i);
    return Fate::kBackground;
}

// The oldest pass-through command in flight, of the completion's direction.
Found Passthrough::to_complete(const BlockEvent &e) {
    Found found;
    for (Index i : m_.devices.of(e.dev).passthrough) {
        const ReqRec &rec = requests_[i];
        // LTTng derives the letter R from the byte count, which differs between issue and completion.
        const bool other_way = ((rec.op ^ e.rwbs) & kDirection & ~rwbs::kRead) != 0;
        if (other_way || (m_.rq_of(e) && rec.r.pointer && rec.r.pointer != e.rq)) continue;
        if (found) found.ambiguous = true;
        else found = {i, false, m_.rq_of(e) != 0};
    }
    if (found.ambiguous) requests_[found.index].r.ambiguous = true;
    return found;
}

// The flush's issue is missing. The served requests complete right afterwards, and nothing tells which of the waiters
// these are.
void Flushes::unknown_flush_completed(const BlockEvent &e) {
    Device &d = m_.devices.of(e.dev);
    line_.doubt_waiters(d);
    if (FlushCpu *last = e.cpu != kNoCpu ? d.flush_cpus.find(e.cpu) : nullptr) last->done = 0;
}

Fate Flushes::issue_flush(const BlockEvent &e) {
    ++m_.counts.flushes;
    losses_.give_up_left(e);
    Index i = kNil;
    if (Index *known = m_.rq_of(e) ? requests_.by_pointer(e.rq) : nullptr) {
        if (requests_[*known].step == Step::kRequeued && requests_[*known].is_flush) i = *known;
        else requests_.reuse(*known);
    }
    Device &d = m_.devices.of(e.dev);
    for (Index f : d.flushes)
        if (!m_.rq_of(e) && requests_[f].step == Step::kRequeued && d.queues.same(requests_[f].r.issue_cpu, e.cpu) &&
            (i == kNil || requests_[f].r.issue_cpu == e.cpu))
            i = f;
    if (i != kNil) {
        requests_.begin_issue(e, i);
        return requests_.fate_of(requests_[i]);
    }
    if (e.queue != kNoQueue) d.queues.tell(e.cpu, e.queue);
    give_up_flushes(e);
    losses_.give_up_owed(d);
    i = requests_.make(e, kNoSector, 0);
    ReqRec &flush = requests_[i];
    flush.is_flush = flush.listed = true;
    flush.r.kind = IoKind::kFlush;
    if (e.rq) requests_.set_pointer(i, e.rq);
    ++d.flush_issues;
    enlist(d.flushes, i);
    if (!d.has_getrq) line_.take_flush_bios(e, i);
    losses_.give_up_waiters(e);
    line_.serve_by(e, i);
    requests_.begin_issue(e, i);
    if (flush.r.bios.empty() && flush.r.queue_ns == kNoTime) {
        line_.doubt_waiters(d);
        if (d.owed > 0) return Fate::kRequestStep;
        ++m_.counts.unmatched_issue;
        return Fate::kOrphanRequest;
    }
    return requests_.fate_of(requests_[i]);
}

// A hardware queue has one flush in flight: an older open flush of the queue has lost its completion. (With pointers,
// the return of the pointer tells the same.)
void Flushes::give_up_flushes(const BlockEvent &e) {
    constexpr std::size_t kMost = 64;
    Device &d = m_.devices.of(e.dev);
    lost_.clear();
    // From the latest issue back. With a flush surely of this queue, earlier flushes of unknown queues are given up as
    // well.
    bool lost = false;
    for (auto f = d.flushes.rbegin(); f != d.flushes.rend(); ++f) {
        if (requests_[*f].step != Step::kIssued || e.cpu == kNoCpu) continue;
        const Kinship kin = d.queues.kinship(requests_[*f].r.issue_cpu, e.cpu);
        lost = lost || kin == Kinship::kTogether;
        if (lost && kin != Kinship::kApart) lost_.push_back(*f);
        else d.queues.note_several();
    }
    if (m_.rq_of(e)) return;
    if (lost_.empty() && d.flushes.size() > kMost) lost_.push_back(d.flushes.front());
    for (std::size_t k = 0; k < lost_.size(); ++k) {
        ReqRec &flush = requests_[lost_[k]];
        line_.flush_completed(e, lost_[k]);
        if (d.unsure_ns >= flush.r.issue_ns) {  // the flush's completion was given to another flush
            flush.r.complete_ns = d.unsure_ns;
            flush.r.ambiguous = true;
            ++d.unsure;
        } else {
            ++m_.counts.presumed_lost;
        }
        requests_.close(lost_[k]);
    }
}

// The flush of a completion (or requeue) without sectors. Among several in flight: a flush issued by this CPU, or
// serving a request of this CPU (the kernel sends the completion there); else a flush of a CPU whose requests are known
// to complete here.
Found Flushes::flush_to_complete(const BlockEvent &e) {
    if (Index *known = m_.rq_of(e) ? requests_.by_pointer(e.rq) : nullptr; known && requests_[*known].is_flush)
        return {*known, false, true};
    Found found;
    Device &d = m_.devices.of(e.dev);
    int best = -1;
    unsigned fits = 0, in_flight = 0;
    for (Index i : d.flushes) {
        const ReqRec &rec = requests_[i];
        if (rec.step != Step::kIssued || (m_.rq_of(e) && rec.r.pointer)) continue;
        ++in_flight;
        const std::uint32_t issued = rec.r.issue_cpu;
        const bool seen = d.queues.completes(issued, e.cpu);
        const int rank =
            (seen || issued == e.cpu ? 2 : 0) + (e.cpu != kNoCpu && (issued == e.cpu || rec.r.queue_cpu == e.cpu));
        // If requests of several queues complete on one CPU, the issuing CPU proves little.
        fits = rank >> 1 > best >> 1 ? 1 : fits + (rank >> 1 == best >> 1);
        if (rank < best) continue;
        if (rank > best) found.index = i;
        best = rank;
    }
    // If requests issued by the CPU have always completed elsewhere, the completion belongs to a flush without an issue
    // event.
    if (best == 0 && d.queues.several() && e.cpu != kNoCpu && e.kind == BlockKind::kRqComplete) {
        const std::uint32_t issued = requests_[found.index].r.issue_cpu;
        if (d.queues.knows_completions(issued)) return {};
    }
    if (in_flight > 1 && e.kind == BlockKind::kRqComplete) d.unsure_ns = d.doubt_ns = e.ts_ns;
    if (fits < 2) return found;
    found.ambiguous = true;
    d.blind_ns = e.ts_ns;
    for (Index i : d.flushes) requests_[i].r.ambiguous = true;
    return found;
}

Fate Flushes::complete_empty(const BlockEvent &e) {
    losses_.give_up_left(e);
    if ((e.rwbs & rwbs::kFlush) != 0 || (e.sector == kNoSector && (e.rwbs & kDirection) != rwbs::kWrite)) {
        m_.devices.of(e.dev).flush_done_ns = e.ts_ns;
        const Found flush = flush_to_complete(e);
        if (flush) {
            ReqRec &rec = requests_[flush.index];
            m_.says(Conclusion::Hop::kComplete, rec.issue_ordinal, flush.by_pointer, rec.r.ambiguous);
            line_.flush_completed(e, flush.index);
            requests_.completed(e, flush.index);
            rec.r.end_ns = e.ts_ns;
            const Fate fate = requests_.fate_of(requests_[flush.index]);
            requests_.close(flush.index);
            return fate;
        }
        if (Device &d = m_.devices.of(e.dev); d.unsure > 0) {
            --d.unsure;
            return Fate::kBackground;
        }
        unknown_flush_completed(e);
    }
    Found found;
    if ((e.rwbs & rwbs::kFlush) == 0) found = turns_.empty_to_complete(e);
    if (found && !found.by_pointer && losses_.was_anothers(requests_[found.index])) {
        losses_.settle_left(e, found.index, true);
        found = {};
    }
    if (!found) found = passthrough_.to_complete(e);
    return completed_empty(e, found);
}

// A pass-through command with data completes without a sector, with the number of moved sectors.
Fate Flushes::complete_passthrough(const BlockEvent &e) { return completed_empty(e, passthrough_.to_complete(e)); }

Fate Flushes::completed_empty(const BlockEvent &e, Found found) {
    if (!found) {
        m_.says(Conclusion::Hop::kComplete, 0, false, false);
        if (Device &d = m_.devices.of(e.dev); d.owed > 0) return --d.owed, Fate::kRequestStep;
        ++m_.counts.unmatched_complete;
        return Fate::kOrphanRequest;
    }
    const Index i = found.index;
    ReqRec &rec = requests_[i];
    if (e.rq) requests_.set_pointer(i, e.rq);
    if (const FlushCpu *last =
            rec.empty_flush && e.cpu != kNoCpu ? m_.devices.of(e.dev).flush_cpus.find(e.cpu) : nullptr)
        if (last->done != 0 && last->issue_ns >= rec.entered_ns && !rec.needs_flush) rec.r.flushed_by = last->done;
    m_.says(Conclusion::Hop::kComplete, rec.issue_ordinal ? rec.issue_ordinal : rec.ordinal, found.by_pointer,
            rec.r.ambiguous);
    if (rec.empty_flush) contests_.note_contested_flush(e, i);
    runs_.keep(m_.devices.of(e.dev).flush_cpus.find(e.cpu), e, m_.now);
    if (rec.step == Step::kDataDone) {
        ++m_.counts.second_completions;
        if (e.error != 0) rec.r.error = e.error;
    } else {
        requests_.completed(e, i);
    }
    rec.r.end_ns = e.ts_ns;
    const Fate fate = requests_.fate_of(requests_[i]);
    requests_.close(i);
    return fate;
}

}  // namespace opline::block_model
