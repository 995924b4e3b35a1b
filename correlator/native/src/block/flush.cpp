// SPDX-License-Identifier: MIT
// The flush machinery (the kernel's block/blk-flush.c), and requests without sectors.
// A bio with PREFLUSH or FUA gets a request of its own. Before its data (PREFLUSH) and after (FUA, if the device has
// none) the machinery issues flush requests, each for all that wait at the time; so flushes are fewer than the bios
// that ask for one. What has data completes twice: with its sectors, and with none when the last flush is done. What
// has none is never issued and completes only with none.
//
// There is one machinery per hardware queue, with one flush in flight. Requests that wait are those of the CPUs of that
// queue (of the CPU that allocated them). A flush is for all that wait when it is started, and it is started when the
// first begins to wait, or when the flush before it, or data between two flushes, is done. Whoever comes later waits
// for the next one, though its getrq comes before this one's issue. What a flush was for goes on, or completes, right
// after it, on the same CPU and in order of arrival. block/flush_queues.cpp has what is learned of CPUs and queues.
#include <algorithm>

#include "block/engine.hpp"

namespace opline::block_model {
namespace {
constexpr std::uint32_t kEnough = 16;  // completions of what one CPU issued, to know where they are
}

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
    rec.entered_ns = last_ns_;
    line_up(*rec.device, i);
    enlist(rec.device->flush_waiters, i);
}

// What completed was another's than it seemed: so may be what comes for those that wait now.
void Engine::doubt_waiters(Device &d) {
    for (const auto *list : {&d.flush_waiters, &d.second_waiters})
        for (Index w : *list) requests_[w].r.ambiguous = true;
}

// Its issue is missing: what it was for completes right behind it, and which of those that wait that is nothing says.
void Engine::unknown_flush_completed(const BlockEvent &e) {
    Device &d = device(e.dev);
    doubt_waiters(d);
    if (FlushCpu *last = e.cpu != kNoCpu ? d.flush_cpus.find(e.cpu) : nullptr) last->done = 0;
}

// A thread queues a flush: it waits for the one that it queued before no longer.
void Engine::check_flush_before(const BlockEvent &e) {
    if (e.tid <= 0) return;
    Device &d = device(e.dev);
    const auto is_its = [&](const Waiting &w) {
        const BioRec &rec = bios_[w.bio];
        return rec.bio.id == w.id && !rec.finished && rec.request == kNil && rec.bio.nr_sectors == 0 &&
               rec.bio.tid == e.tid;
    };
    const auto bio = std::find_if(d.flush_bios.begin(), d.flush_bios.end(), is_its);
    const auto waiter = std::find_if(d.flush_waiters.begin(), d.flush_waiters.end(), [&](Index w) {
        return requests_[w].empty_flush && requests_[w].r.queue_tid == e.tid;
    });
    const bool of_bio = bio != d.flush_bios.end();
    if (!of_bio && waiter == d.flush_waiters.end()) {
        ++d.flushes_alone;
        return;
    }
    const std::int64_t since_ns = of_bio ? bio->since_ns : requests_[*waiter].entered_ns;
    const bool left = !of_bio && left_ns(requests_[*waiter]) != kNoTime;
    if (!left) {
        if (d.flush_done_ns < since_ns) {
            ++d.flushes_beside;
            return;
        }
        if (d.flushes_alone < 4 * d.flushes_beside) return;
    }
    if (!of_bio && d.waiter_done_ns >= since_ns) {
        // A completion that was given to another may have been its own. Then that one's is still to come, and is its.
        doubt_waiters(d);
        return;
    }
    if (left) return settle_left(e, *waiter, true);
    missed(e.dev, since_ns, e.ts_ns);
    ++counts.presumed_lost;
    if (of_bio) close_bio(bio->bio);
    else close_request(*waiter);
}

Fate Engine::issue_flush(const BlockEvent &e) {
    ++counts.flushes;
    give_up_left(e);
    Index i = kNil;
    if (Index *known = rq_of(e) ? by_rq_.find(e.rq) : nullptr) {
        if (requests_[*known].step == Step::kRequeued && requests_[*known].is_flush) i = *known;
        else reuse(*known);
    }
    Device &d = device(e.dev);
    for (Index f : d.flushes)
        if (!rq_of(e) && requests_[f].step == Step::kRequeued && same_queue(d, requests_[f].r.issue_cpu, e.cpu) &&
            (i == kNil || requests_[f].r.issue_cpu == e.cpu))
            i = f;
    if (i != kNil) {
        begin_issue(e, i);
        return stepped(e, i);
    }
    give_up_flushes(e);
    give_up_owed(d);
    i = new_request(e, kNoSector, 0);
    ReqRec &flush = requests_[i];
    flush.is_flush = flush.listed = true;
    flush.r.kind = IoKind::kFlush;
    if (e.rq) set_pointer(i, e.rq);
    ++d.flush_issues;
    enlist(d.flushes, i);
    if (!d.has_getrq) take_flush_bios(e, i);
    give_up_waiters(e);
    serve_by(e, i);
    begin_issue(e, i);
    if (flush.r.bios.empty() && flush.r.queue_ns == kNoTime) {
        doubt_waiters(d);
        if (d.owed > 0) return Fate::kRequestStep;
        ++counts.unmatched_issue;
        return Fate::kOrphanRequest;
    }
    return stepped(e, i);
}

// A hardware queue has one flush in flight: an open one of this queue has lost its completion. (Where pointers say
// which is which, the pointer's return says it.)
void Engine::give_up_flushes(const BlockEvent &e) {
    constexpr std::size_t kMost = 64;
    Device &d = device(e.dev);
    scratch_.clear();
    // In order of issue. With one that is surely of this queue go those before it of which nothing is known.
    bool lost = false;
    for (auto f = d.flushes.rbegin(); f != d.flushes.rend(); ++f) {
        if (requests_[*f].step != Step::kIssued || e.cpu == kNoCpu) continue;
        const Kinship kin = kinship(d, requests_[*f].r.issue_cpu, e.cpu);
        lost = lost || kin == Kinship::kTogether;
        if (lost && kin != Kinship::kApart) scratch_.push_back(*f);
        else d.several_queues = true;
    }
    if (rq_of(e)) return;
    if (scratch_.empty() && d.flushes.size() > kMost) scratch_.push_back(d.flushes.front());
    for (std::size_t k = 0; k < scratch_.size(); ++k) {
        ReqRec &flush = requests_[scratch_[k]];
        flush_completed(e, scratch_[k]);
        if (d.unsure_ns >= flush.r.issue_ns) {  // a completion that was given to another was its own
            flush.r.complete_ns = d.unsure_ns;
            flush.r.ambiguous = true;
            ++d.unsure;
        } else {
            ++counts.presumed_lost;
        }
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
        wait_with_bio(e, w.bio);
    }
}

// The bio waits for a flush, in a request of which no getrq was seen.
Index Engine::wait_with_bio(const BlockEvent &e, Index bio) {
    BlockEvent own = e;
    own.rwbs = bios_[bio].bio.rwbs;
    const Index i = new_request(own, 0, 0);
    note_flush_entry(i, own.rwbs);
    attach(bio, i, false, false);
    return i;
}

void Engine::flush_completed(const BlockEvent &e, Index i) {
    const ReqRec &flush = requests_[i];
    const bool lost = e.kind != BlockKind::kRqComplete;
    Device &d = device(e.dev);
    for (const auto *list : {&d.flush_waiters, &d.second_waiters})
        for (Index w : *list)
            if (requests_[w].waits_for == flush.r.id) {
                requests_[w].flush_done = true;
                if (list == &d.flush_waiters && !requests_[w].empty_flush) requests_[w].r.preflush_ns = e.ts_ns;
                requests_[w].done_cpu = e.cpu;
                const bool its_queue = kinship(d, requests_[w].r.queue_cpu, flush.r.issue_cpu) == Kinship::kTogether;
                if (!waits_for_second_flush(e, requests_[w]) && its_queue)
                    requests_[w].flush_missed += !requests_[w].started_flush ? 1 : lost ? kManyMissed : 2;
            }
    set_free(d, flush.r.issue_cpu, e);
    if (flush.beside_cpu != kNoCpu && flush.beside_issues == d.flush_issues && !flush.r.ambiguous)
        note_apart(d, flush.beside_cpu, flush.r.issue_cpu, 4);
    for (Index f : d.flushes)
        if (f != i && requests_[f].step == Step::kIssued && !flush.r.ambiguous) {
            requests_[f].beside_cpu = flush.r.issue_cpu;
            requests_[f].beside_issues = d.flush_issues;
        }
    if (e.cpu == kNoCpu) return;
    FlushCpu &cpu = d.flush_cpus[e.cpu];
    cpu.done = flush.r.id;
    cpu.issued_on = flush.r.issue_cpu;
    cpu.issue_ns = flush.r.issue_ns;
    cpu.ambiguous = flush.r.ambiguous;
    begin_run(cpu, e);
    if (d.flushes.size() == 1 && e.kind == BlockKind::kRqComplete) note_completion(d, flush.r.issue_cpu, e.cpu);
}

// Its data is done. Where the device has no FUA, it waits for one more flush.
void Engine::wait_for_second_completion(const BlockEvent &e, Index i) {
    ReqRec &rec = requests_[i];
    Device &d = device(e.dev);
    set_free(d, rec.r.queue_cpu, e);
    rec.step = Step::kDataDone;
    rec.waits_for = 0;
    rec.flush_done = false;
    rec.flush_missed = 0;
    rec.entered_ns = e.ts_ns;
    rec.listed = true;
    line_up(d, i);
    enlist(d.second_waiters, i);
}

// What C means for every request: its device time ends.
void Engine::completed(const BlockEvent &e, Index i) {
    ReqRec &rec = requests_[i];
    took(*rec.device, rec.r.issue_ns, e.ts_ns);
    rec.r.complete_ns = e.ts_ns;
    rec.r.complete_cpu = e.cpu;
    if (rec.in_device && !rec.r.ambiguous) {
        std::size_t power = 0;
        for (auto n = rec.device->completions - rec.dev_completions; n > 0 && power + 1 < rec.device->passes.size();
             n >>= 1)
            ++power;
        ++rec.device->passes[power];
    }
    if (e.error != 0) rec.r.error = e.error;
    ++rec.device->completions;
    leave_device(rec);
}

// The flush that a completion (or requeue) without sectors is of. Of several in flight: one that this CPU issued, or
// that is for a request of this CPU (where the kernel sends its completion), else one of a CPU whose requests have been
// seen to complete here.
Found Engine::flush_to_complete(const BlockEvent &e) {
    if (Index *known = rq_of(e) ? by_rq_.find(e.rq) : nullptr; known && requests_[*known].is_flush)
        return {*known, false, true};
    Found found;
    Device &d = device(e.dev);
    int best = -1;
    unsigned fits = 0, in_flight = 0;
    for (Index i : d.flushes) {
        const ReqRec &rec = requests_[i];
        if (rec.step != Step::kIssued || (rq_of(e) && rec.r.pointer)) continue;
        ++in_flight;
        const std::uint32_t issued = rec.r.issue_cpu;
        const bool seen = issued < d.completes_on.size() && e.cpu != kNoCpu && d.completes_on[issued].on(e.cpu);
        const int rank =
            (seen || issued == e.cpu ? 2 : 0) + (e.cpu != kNoCpu && (issued == e.cpu || rec.r.queue_cpu == e.cpu));
        // Where requests of several queues complete on one CPU, who issued what says little.
        fits = rank >> 1 > best >> 1 ? 1 : fits + (rank >> 1 == best >> 1);
        if (rank < best) continue;
        if (rank > best) found.index = i;
        best = rank;
    }
    // Where what that CPU issued has always completed elsewhere, it is a flush whose issue is missing.
    if (best == 0 && d.several_queues && e.cpu != kNoCpu && e.kind == BlockKind::kRqComplete) {
        const std::uint32_t issued = requests_[found.index].r.issue_cpu;
        if (issued < d.completes_on.size() && d.completes_on[issued].most >= kEnough) return {};
    }
    if (in_flight > 1 && e.kind == BlockKind::kRqComplete) d.unsure_ns = d.doubt_ns = e.ts_ns;
    if (fits < 2) return found;
    found.ambiguous = true;
    d.blind_ns = e.ts_ns;
    for (Index i : d.flushes) requests_[i].r.ambiguous = true;
    return found;
}

Fate Engine::complete_empty(const BlockEvent &e) {
    give_up_left(e);
    if ((e.rwbs & rwbs::kFlush) != 0 || (e.sector == kNoSector && (e.rwbs & kDirection) != rwbs::kWrite)) {
        device(e.dev).flush_done_ns = e.ts_ns;
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
        if (Device &d = device(e.dev); d.unsure > 0) {
            --d.unsure;
            return Fate::kBackground;
        }
        unknown_flush_completed(e);
    }
    Found found;
    if ((e.rwbs & rwbs::kFlush) == 0) found = empty_to_complete(e);
    if (found && !found.by_pointer && was_anothers(requests_[found.index])) {
        settle_left(e, found.index, true);
        found = {};
    }
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
        if (Device &d = device(e.dev); d.owed > 0) return --d.owed, Fate::kRequestStep;
        ++counts.unmatched_complete;
        return Fate::kOrphanRequest;
    }
    const Index i = found.index;
    ReqRec &rec = requests_[i];
    if (e.rq) set_pointer(i, e.rq);
    if (const FlushCpu *last = rec.empty_flush && e.cpu != kNoCpu ? device(e.dev).flush_cpus.find(e.cpu) : nullptr)
        if (last->done != 0 && last->issue_ns >= rec.entered_ns && !rec.needs_flush) rec.r.flushed_by = last->done;
    says(Conclusion::Hop::kComplete, rec.issue_ordinal ? rec.issue_ordinal : rec.ordinal, found.by_pointer,
         rec.r.ambiguous);
    if (rec.empty_flush) note_contested_flush(e, i);
    keep_run(e);
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
