// SPDX-License-Identifier: MIT
// The flush machinery (the kernel's block/blk-flush.c), and requests without sectors.
// A bio with PREFLUSH or FUA gets a request of its own. Before its data (PREFLUSH) and after (FUA, if the device has
// none) the machinery issues flush requests, each for all that wait at the time; so flushes are fewer than the bios
// that ask for one. What has data completes twice: with its sectors, and with none when the last flush is done. What
// has none is never issued and completes only with none.
#include <algorithm>

#include "block_engine.hpp"

namespace opline::block_model {

void Engine::forget(std::vector<Index> &list, Index i) {
    auto it = std::find(list.begin(), list.end(), i);
    if (it != list.end()) list.erase(it);
}

// Lists are short unless steps of every request are missing; then their oldest are found no more, and wait for the end.
void Engine::enlist(std::vector<Index> &list, Index i) {
    constexpr std::size_t kMost = 1024;
    if (list.size() >= kMost) list.erase(list.begin(), list.begin() + kMost / 2);
    list.push_back(i);
}

void Engine::note_flush_entry(Index i, std::uint32_t flags) {
    ReqRec &rec = requests_[i];
    rec.entry_flags = flags & (rwbs::kFua | rwbs::kPreflush);
    if (!(flags & rwbs::kPreflush)) return;
    rec.empty_flush = rec.remaining == 0;
    rec.waits_flush = rec.listed = true;
    enlist(rec.device->flush_waiters, i);
}

// Every waiting request of the device is served by the flush that is issued now, unless one in flight serves it
// already.
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
    give_up_flushes(e);
    i = new_request(e, kNoSector, 0);
    ReqRec &flush = requests_[i];
    flush.is_flush = flush.listed = true;
    flush.r.kind = IoKind::kFlush;
    if (e.rq) set_pointer(i, e.rq);
    Device &dev = device(e.dev);
    enlist(dev.flushes, i);
    take_flush_bios(e, i);
    // What a flush served goes on before the next one is issued, unless it came between that flush's start and its
    // issue. The first in line did not; others are given a second one.
    scratch_.clear();
    for (const auto *list : {&dev.flush_waiters, &dev.second_waiters})
        for (Index w : *list)
            if (requests_[w].flush_done && requests_[w].flush_missed >= 2) scratch_.push_back(w);
    for (std::size_t k = 0; k < scratch_.size(); ++k) {
        ++counts.presumed_lost;
        close_request(scratch_[k]);
    }
    for (const auto *list : {&dev.flush_waiters, &dev.second_waiters})
        for (Index w : *list)
            if (flush_of(dev, requests_[w]) == kNil) serve(i, w, e.cpu);
    if (flush.r.bios.empty() && flush.r.queue_ns == kNoTime) {
        // The device has a flush queue per hardware queue: what this CPU allocated is not the other queue's.
        for (const auto *list : {&dev.flush_waiters, &dev.second_waiters})
            for (Index w : *list)
                if (Index f = flush_of(dev, requests_[w]); f != i && f != kNil && requests_[w].r.queue_cpu == e.cpu &&
                                                           requests_[f].r.issue_cpu != e.cpu) {
                    unserve(f, w);
                    serve(i, w, e.cpu);
                }
    }
    begin_issue(e, i);
    if (flush.r.bios.empty() && flush.r.queue_ns == kNoTime) {
        ++counts.unmatched_issue;
        return Fate::kOrphanRequest;
    }
    return stepped(e, i);
}

// A hardware queue has one flush in flight, and a CPU issues for one hardware queue: an open flush that this CPU issued
// has lost its completion. (Where pointers say which is which, the pointer's return says it.)
void Engine::give_up_flushes(const BlockEvent &e) {
    if (rq_of(e)) return;
    constexpr std::size_t kMost = 64;
    Device &d = device(e.dev);
    scratch_.clear();
    for (Index f : d.flushes)
        if (requests_[f].step == Step::kIssued && e.cpu != kNoCpu && requests_[f].r.issue_cpu == e.cpu)
            scratch_.push_back(f);
    if (scratch_.empty() && d.flushes.size() > kMost) scratch_.push_back(d.flushes.front());
    for (std::size_t k = 0; k < scratch_.size(); ++k) {
        ++counts.presumed_lost;
        flush_completed(e, scratch_[k]);
        close_request(scratch_[k]);
    }
}

// Without getrq events the flush bios themselves wait.
void Engine::take_flush_bios(const BlockEvent &e, Index flush) {
    std::vector<Waiting> pending;
    pending.swap(device(e.dev).flush_bios);
    for (const Waiting &w : pending) {
        const BioRec &bio = bios_[w.bio];
        if (bio.bio.id != w.id || bio.finished || bio.request != kNil) continue;
        if (bio.bio.nr_sectors > 0) {  // its request begins at its issue
            ReqRec &rec = requests_[flush];
            if (rec.r.queue_ns == kNoTime) rec.r.queue_ns = bio.bio.queue_ns;
            rec.r.bios.push_back(w.id);
            add_owner(rec, bio.bio.owner);
            continue;
        }
        BlockEvent own = e;
        own.rwbs = bio.bio.rwbs;
        const Index i = new_request(own, 0, 0);
        note_flush_entry(i, own.rwbs);
        attach(w.bio, i, false, false);
    }
}

// The flush in flight that serves it.
Index Engine::flush_of(const Device &d, const ReqRec &waiter) const {
    if (waiter.waits_for == 0 || waiter.flush_done) return kNil;
    for (Index f : d.flushes)
        if (requests_[f].r.id == waiter.waits_for) return f;
    return kNil;
}

void Engine::serve(Index i, Index w, std::uint32_t cpu) {
    ReqRec &flush = requests_[i], &waiter = requests_[w];
    waiter.r.flushed_by = waiter.waits_for = flush.r.id;
    waiter.flush_done = false;
    waiter.first_served = flush.r.queue_ns == kNoTime && flush.r.bios.empty() && waiter.r.queue_cpu == cpu;
    if (flush.r.queue_ns == kNoTime) {
        flush.r.queue_ns = waiter.r.queue_ns;
        flush.r.queue_tid = waiter.r.queue_tid;
        flush.r.queue_comm = waiter.r.queue_comm;
        flush.r.queue_cpu = waiter.r.queue_cpu;
    }
    flush.r.ambiguous = flush.r.ambiguous || waiter.r.ambiguous;
    flush.r.bios.insert(flush.r.bios.end(), waiter.r.bios.begin(), waiter.r.bios.end());
    if (hooks_)
        for (const Owner &o : waiter.r.owners) add_owner(flush, o);
}

void Engine::unserve(Index i, Index w) {
    ReqRec &flush = requests_[i];
    for (std::uint64_t id : requests_[w].r.bios)
        flush.r.bios.erase(std::remove(flush.r.bios.begin(), flush.r.bios.end(), id), flush.r.bios.end());
    flush.r.owners.clear();
    const Device &d = *flush.device;
    for (const auto *list : {&d.flush_waiters, &d.second_waiters})
        for (Index other : *list)
            if (other != w && flush_of(d, requests_[other]) == i)
                for (const Owner &o : requests_[other].r.owners) add_owner(flush, o);
}

void Engine::flush_completed(const BlockEvent &e, Index i) {
    const std::uint64_t id = requests_[i].r.id;
    Device &d = device(e.dev);
    for (const auto *list : {&d.flush_waiters, &d.second_waiters})
        for (Index w : *list)
            if (requests_[w].waits_for == id) {
                requests_[w].flush_done = true;
                requests_[w].flush_missed += requests_[w].first_served ? 2 : 1;
            }
}

// What C means for every request: its device time ends.
void Engine::completed(const BlockEvent &e, Index i) {
    ReqRec &rec = requests_[i];
    rec.r.complete_ns = e.ts_ns;
    rec.r.complete_cpu = e.cpu;
    if (e.error != 0) rec.r.error = e.error;
    ++rec.device->completions;
    leave_device(rec);
}

// The flush that a completion (or requeue) without sectors is of: of several in flight, the one that this CPU issued.
Found Engine::flush_to_complete(const BlockEvent &e) {
    if (Index *known = rq_of(e) ? by_rq_.find(e.rq) : nullptr; known && requests_[*known].is_flush)
        return {*known, false, true};
    Found found;
    const Device &d = device(e.dev);
    // One in flight per hardware queue, and both issue and completion run on that queue's CPUs.
    unsigned fits = 0, here = 0;
    for (Index i : d.flushes) {
        const ReqRec &rec = requests_[i];
        if (rec.step != Step::kIssued || (rq_of(e) && rec.r.pointer)) continue;
        const bool same_cpu = e.cpu != kNoCpu && rec.r.issue_cpu == e.cpu;
        ++fits;
        here += same_cpu;
        if (!found || (same_cpu && here == 1)) found.index = i;
    }
    if (fits < 2 || here == 1) return found;
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
