// SPDX-License-Identifier: MIT
// The flush machinery (the kernel's block/blk-flush.c), and requests without sectors.
// A bio with PREFLUSH or FUA gets a request of its own. Before its data (PREFLUSH) and after (FUA, if the device has none)
// the machinery issues flush requests, each for all that wait at the time; so flushes are fewer than the bios that ask for
// one. What has data completes twice: with its sectors, and with none when the last flush is done. What has none is never
// issued and completes only with none.
#include <algorithm>

#include "block_engine.hpp"

namespace opline::block_model {

void Engine::forget(std::vector<Index> &list, Index i) {
    auto it = std::find(list.begin(), list.end(), i);
    if (it != list.end()) list.erase(it);
}

void Engine::note_flush_entry(Index i, std::uint32_t flags) {
    ReqRec &rec = requests_[i];
    rec.entry_flags = flags & (rwbs::kFua | rwbs::kPreflush);
    if (!(flags & rwbs::kPreflush)) return;
    rec.empty_flush = rec.remaining == 0;
    rec.waits_flush = true;
    device(rec.r.dev).flush_waiters.push_back(i);
}

// Every waiting request of the device is served by the flush that is issued now, unless one in flight serves it.
Fate Engine::issue_flush(const BlockEvent &e) {
    ++counts.flushes;
    Index i = kNil;
    if (Index *known = rq_of(e) ? by_rq_.find(e.rq) : nullptr) {
        if (requests_[*known].step == Step::kRequeued && requests_[*known].is_flush) i = *known;
        else reuse(*known);
    }
    Device &d = device(e.dev);
    for (std::size_t k = 0; k < d.flushes.size() && i == kNil && !rq_of(e); ++k)
        if (requests_[d.flushes[k]].step == Step::kRequeued) i = d.flushes[k];
    if (i != kNil) {
        begin_issue(e, i);
        return stepped(e, i);
    }
    i = new_request(e, kNoSector, 0);
    ReqRec &flush = requests_[i];
    flush.is_flush = true;
    flush.r.kind = IoKind::kFlush;
    if (e.rq) set_pointer(i, e.rq);
    Device &dev = device(e.dev);
    dev.flushes.push_back(i);
    auto serve = [&](Index w) {
        ReqRec &waiter = requests_[w];
        if (waiter.r.flushed_by != 0 && !waiter.flush_done) {
            bool in_flight = false;
            for (Index f : dev.flushes) in_flight = in_flight || (f != i && requests_[f].r.id == waiter.r.flushed_by);
            if (in_flight) return;
        }
        waiter.r.flushed_by = flush.r.id;
        waiter.flush_done = false;
        if (flush.r.queue_ns == kNoTime) {
            flush.r.queue_ns = waiter.r.queue_ns;
            flush.r.queue_tid = waiter.r.queue_tid;
            flush.r.queue_comm = waiter.r.queue_comm;
            flush.r.queue_cpu = waiter.r.queue_cpu;
        }
        flush.r.ambiguous = flush.r.ambiguous || waiter.r.ambiguous;
        flush.r.bios.insert(flush.r.bios.end(), waiter.r.bios.begin(), waiter.r.bios.end());
        for (const Owner &o : waiter.r.owners) add_owner(flush, o);
    };
    // One that has seen two flushes complete and did not go on has lost its completion.
    scratch_.clear();
    for (Index w : dev.flush_waiters)
        if (requests_[w].flush_missed >= 2) scratch_.push_back(w);
    const std::vector<Index> lost = scratch_;
    for (Index w : lost) {
        ++counts.presumed_lost;
        close_request(w);
    }
    for (Index w : dev.flush_waiters) serve(w);
    for (Index w : dev.second_waiters) serve(w);
    begin_issue(e, i);
    if (flush.r.queue_ns == kNoTime && flush.r.bios.empty()) {
        ++counts.unmatched_issue;
        return Fate::kOrphanRequest;
    }
    return stepped(e, i);
}

void Engine::flush_completed(const BlockEvent &e, Index i) {
    const std::uint64_t id = requests_[i].r.id;
    Device &d = device(e.dev);
    for (const auto *list : {&d.flush_waiters, &d.second_waiters})
        for (Index w : *list)
            if (requests_[w].r.flushed_by == id) {
                requests_[w].flush_done = true;
                ++requests_[w].flush_missed;
            }
}

// What C means for every request: its device time ends.
void Engine::completed(const BlockEvent &e, Index i) {
    ReqRec &rec = requests_[i];
    rec.r.complete_ns = e.ts_ns;
    rec.r.complete_cpu = e.cpu;
    if (e.error != 0) rec.r.error = e.error;
    ++device(rec.r.dev).completions;
    leave_device(rec);
}

// The flush that a completion (or requeue) without sectors is of: of several in flight, the one that this CPU issued.
Found Engine::flush_to_complete(const BlockEvent &e) {
    if (Index *known = rq_of(e) ? by_rq_.find(e.rq) : nullptr; known && requests_[*known].is_flush)
        return {*known, false, true};
    Found found;
    const Device &d = device(e.dev);
    unsigned fits = 0;
    int best = -1;
    for (Index i : d.flushes) {
        const ReqRec &rec = requests_[i];
        if (rec.step != Step::kIssued || (rq_of(e) && rec.r.pointer)) continue;
        const int rank = e.cpu != kNoCpu && rec.r.issue_cpu == e.cpu ? 1 : 0;
        ++fits;
        if (rank > best) {
            found.index = i;
            best = rank;
        }
    }
    if (fits < 2) return found;
    found.ambiguous = true;
    for (Index i : d.flushes) requests_[i].r.ambiguous = true;
    return found;
}

// The write (or flush bio's request) that a completion without sectors ends.
Found Engine::empty_to_complete(const BlockEvent &e) {
    if (Index *known = rq_of(e) ? by_rq_.find(e.rq) : nullptr)
        if (requests_[*known].step == Step::kDataDone) return {*known, false, true};
    Index of_bio = kNil;
    if (Index *known = bio_of(e) ? by_bio_.find(e.bio) : nullptr) of_bio = bios_[*known].request;
    if (of_bio != kNil && requests_[of_bio].r.dev == e.dev &&
        (requests_[of_bio].step == Step::kDataDone || requests_[of_bio].empty_flush))
        return {of_bio, false, true};
    const Device &d = device(e.dev);
    Found found;
    for (Index i : d.second_waiters) {
        const ReqRec &rec = requests_[i];
        if (rq_of(e) && rec.r.pointer && rec.r.pointer != e.rq) continue;
        // It names the sector where its last bio begins, or where it ended: that depends on the kernel.
        const bool here = rec.r.sector == e.sector || rec.r.sector + rec.r.nr_sectors == e.sector ||
                          (!rec.bios.empty() && bios_[rec.bios.back()].bio.sector == e.sector);
        if (!here) continue;
        if (found) found.ambiguous = true;
        else found.index = i;
    }
    if (found.ambiguous)
        for (Index i : d.second_waiters) requests_[i].r.ambiguous = true;
    if (found || (e.sector != 0 && e.sector != kNoSector)) return found;
    // A completed flush lets all that waited for it go on at once, in the order in which they came.
    for (int done = 1; done >= 0 && !found; --done)
        for (Index i : d.flush_waiters) {
            const ReqRec &rec = requests_[i];
            if (!rec.empty_flush || rec.flush_done != (done == 1)) continue;
            if (rq_of(e) && rec.r.pointer && rec.r.pointer != e.rq) continue;
            if (!found) found.index = i;
        }
    return found;
}

Fate Engine::complete_empty(const BlockEvent &e) {
    if ((e.rwbs & rwbs::kFlush) != 0 || (e.sector == kNoSector && (e.rwbs & kDirection) != rwbs::kWrite)) {
        const Found flush = flush_to_complete(e);
        if (flush) {
            ReqRec &rec = requests_[flush.index];
            says(Conclusion::Hop::kComplete, rec.issue_ordinal, flush.by_pointer, rec.r.ambiguous);
            flush_completed(e, flush.index);
            completed(e, flush.index);
            rec.r.end_ns = e.ts_ns;
            const Fate fate = stepped(e, flush.index);
            close_request(flush.index);
            return fate;
        }
    }
    Found found;
    if ((e.rwbs & rwbs::kFlush) == 0) found = empty_to_complete(e);
    if (!found && (e.rwbs & kDirection & ~rwbs::kRead) == 0) {
        Device &d = device(e.dev);
        for (Index i : d.passthrough) {
            if (rq_of(e) && requests_[i].r.pointer && requests_[i].r.pointer != e.rq) continue;
            if (found) found.ambiguous = true;
            else found = {i, false, rq_of(e) != 0};
        }
        if (found && found.ambiguous) requests_[found.index].r.ambiguous = true;
    }
    if (!found) {
        says(Conclusion::Hop::kComplete, 0, false, false);
        ++counts.unmatched_complete;
        return Fate::kOrphanRequest;
    }
    const Index i = found.index;
    ReqRec &rec = requests_[i];
    if (e.rq) set_pointer(i, e.rq);
    says(Conclusion::Hop::kComplete, rec.issue_ordinal ? rec.issue_ordinal : rec.ordinal, found.by_pointer,
         rec.r.ambiguous);
    if (rec.step == Step::kDataDone) {
        ++counts.second_completions;
        if (e.error != 0) rec.r.error = e.error;
    } else {
        completed(e, i);
    }
    rec.r.end_ns = e.ts_ns;
    const Fate fate = stepped(e, i);
    close_request(i);
    return fate;
}

}  // namespace opline::block_model
