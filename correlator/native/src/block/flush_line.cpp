// SPDX-License-Identifier: MIT
#include "block/flush_line.hpp"

#include <algorithm>

namespace opline::block_model {

// flush_end_io() completes the served requests with interrupts off: right after the flush, before the CPU does anything
// else. Other CPUs may do anything meanwhile.
void FlushRuns::begin(FlushCpu &of, const BlockEvent &e, std::uint64_t ordinal) {
    of.goes_on = 0;
    if (e.kind != BlockKind::kRqComplete || e.cpu >= kMostCpus) return;  // given up: no completions follow
    if (e.cpu >= last_on_cpu_.size()) last_on_cpu_.resize(e.cpu + 1);
    of.goes_on = last_on_cpu_[e.cpu] = ordinal;
}

void FlushRuns::keep(FlushCpu *of, const BlockEvent &e, std::uint64_t ordinal) {
    if (of && e.cpu < last_on_cpu_.size() && of->goes_on == before_) of->goes_on = ordinal;
}

// The request's flush is complete, and the requests served by the flush are completing now.
bool FlushRuns::goes_on(const Device &d, const ReqRec &waiter) const {
    if (!waiter.flush_done || waiter.done_cpu >= last_on_cpu_.size()) return false;
    const FlushCpu *of = d.flush_cpus.find(waiter.done_cpu);
    if (!of || of->ambiguous || of->goes_on == 0 || of->done != waiter.waits_for) return false;
    return of->goes_on == last_on_cpu_[waiter.done_cpu];
}

void FlushLine::note_flush_entry(Index i, std::uint32_t flags) {
    ReqRec &rec = requests_[i];
    rec.entry_flags = flags & (rwbs::kFua | rwbs::kPreflush);
    if (!(flags & rwbs::kPreflush)) return;
    rec.empty_flush = rec.remaining == 0;
    rec.waits_flush = rec.listed = true;
    rec.entered_ns = m_.last_ns;
    line_up(*rec.device, i);
    enlist(rec.device->flush_waiters, i);
}

// A completion was assigned to the wrong request: the waiters' completions are doubtful, too.
void FlushLine::doubt_waiters(Device &d) {
    for (const auto *list : {&d.flush_waiters, &d.second_waiters})
        for (Index w : *list) requests_[w].r.ambiguous = true;
}

// Without getrq events the flush bios themselves wait.
void FlushLine::take_flush_bios(const BlockEvent &e, Index flush) {
    std::vector<Waiting> pending;
    pending.swap(m_.devices.of(e.dev).flush_bios);
    for (const Waiting &w : pending) {
        const BioRec &bio = bios_[w.bio];
        if (bio.bio.id != w.id || bio.finished || bio.request != kNil) continue;
        if (bio.bio.nr_sectors > 0) {  // a request with data begins at its issue
            ReqRec &rec = requests_[flush];
            if (rec.r.queue_ns == kNoTime) rec.r.queue_ns = bio.bio.queue_ns;
            rec.r.bios.push_back(w.id);
            requests_.add_owner(rec, bio.bio.owner);
            continue;
        }
        wait_with_bio(e, w.bio);
    }
}

// Gives the waiting bio a request, as the getrq is missing.
Index FlushLine::wait_with_bio(const BlockEvent &e, Index bio) {
    BlockEvent own = e;
    own.rwbs = bios_[bio].bio.rwbs;
    const Index i = requests_.make(own, 0, 0);
    note_flush_entry(i, own.rwbs);
    requests_.attach(bio, i, false, false);
    return i;
}

void FlushLine::flush_completed(const BlockEvent &e, Index i) {
    const ReqRec &flush = requests_[i];
    const bool lost = e.kind != BlockKind::kRqComplete;
    Device &d = m_.devices.of(e.dev);
    for (const auto *list : {&d.flush_waiters, &d.second_waiters})
        for (Index w : *list)
            if (requests_[w].waits_for == flush.r.id) {
                requests_[w].flush_done = true;
                if (list == &d.flush_waiters && !requests_[w].empty_flush) requests_[w].r.preflush_ns = e.ts_ns;
                requests_[w].done_cpu = e.cpu;
                const bool its_queue =
                    d.queues.kinship(requests_[w].r.queue_cpu, flush.r.issue_cpu) == Kinship::kTogether;
                if (!waits_for_second_flush(e, requests_[w]) && its_queue)
                    requests_[w].flush_missed += !requests_[w].started_flush ? 1 : lost ? kManyMissed : 2;
            }
    set_free(d, flush.r.issue_cpu, e);
    if (flush.beside_cpu != kNoCpu && flush.beside_issues == d.flush_issues && !flush.r.ambiguous)
        d.queues.note_apart(flush.beside_cpu, flush.r.issue_cpu, 4);
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
    runs_.begin(cpu, e, m_.now);
    if (d.flushes.size() == 1 && e.kind == BlockKind::kRqComplete) d.queues.note_completion(flush.r.issue_cpu, e.cpu);
}

// The request's data is done. On a device without FUA the request waits for one more flush.
void FlushLine::wait_for_second_completion(const BlockEvent &e, Index i) {
    ReqRec &rec = requests_[i];
    Device &d = m_.devices.of(e.dev);
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

void FlushLine::set_free(Device &d, std::uint32_t cpu, const BlockEvent &e) {
    if (d.flush_cpus.size() >= kMostCpus) return;
    FlushCpu &of = d.flush_cpus[cpu];
    of.free_ns = e.ts_ns;
    of.free_cpu = e.cpu;
}

// The time since when the CPU's queue has neither a flush nor a flush's data in flight, and the CPU of the last end.
FlushCpu FlushLine::free_since(const Device &d, std::uint32_t cpu) {
    FlushCpu last;
    d.flush_cpus.for_each([&](std::uint32_t other, const FlushCpu &of) {
        if (of.free_ns > last.free_ns && d.queues.same(cpu, other)) last = of;
    });
    return last;
}

void FlushLine::line_up(Device &d, Index i) {
    requests_[i].alone = d.flush_waiters.empty() && d.second_waiters.empty();
    for (const auto *list : {&d.flush_waiters, &d.second_waiters})
        for (Index w : *list) requests_[w].alone = false;
}

// A request with data and without a getrq looks like an empty flush.
bool FlushLine::lacks_data(const ReqRec &rec) const {
    return rec.empty_flush && !rec.bios.empty() && bios_[rec.bios.back()].bio.nr_sectors != 0;
}

// An empty request with PREFLUSH and FUA (device-mapper sends such a bio before the data from Linux 6.12 on): a device
// without FUA gets two flushes, one after the other. If no fact tells whether the device has FUA, the completion does:
// a request that completes right after the first flush did not wait for a second flush.
bool FlushLine::waits_for_second_flush(const BlockEvent &e, ReqRec &rec) {
    if (!rec.empty_flush || rec.needs_flush || (rec.entry_flags & rwbs::kFua) == 0) return false;
    const std::optional<bool> fua = rec.device->fua;
    if (fua.value_or(false) || lacks_data(rec)) return false;
    rec.needs_flush = true;
    rec.entered_ns = e.ts_ns;
    if (fua) {  // the device has no FUA: the second flush is still to come
        rec.waits_for = 0;
        rec.flush_done = false;
    }
    return true;
}

// A waiter for this CPU's flush that was given to another CPU's flush. own_only: only a request of this CPU.
Index FlushLine::taken_back(const BlockEvent &e, Index flush, bool own_only) {
    Device &d = m_.devices.of(e.dev);
    Index taken = kNil;
    for (const auto *list : {&d.flush_waiters, &d.second_waiters})
        for (Index w : *list) {
            const ReqRec &rec = requests_[w];
            const Index f = rec.waits_flush || rec.needs_flush ? flush_of(d, rec) : kNil;
            if (f == kNil || f == flush || requests_[f].r.issue_cpu == e.cpu) continue;
            if (d.queues.kinship(rec.r.queue_cpu, e.cpu) == Kinship::kApart) continue;
            const bool own = rec.r.queue_cpu == e.cpu;
            if (own_only && !own) continue;
            if (taken == kNil || (own && requests_[taken].r.queue_cpu != e.cpu)) taken = w;
        }
    if (taken == kNil) return kNil;
    const Index wrong = flush_of(d, requests_[taken]);
    if (requests_[taken].r.queue_cpu == e.cpu) d.queues.note_apart(requests_[wrong].r.issue_cpu, e.cpu, 1);
    else requests_[taken].r.ambiguous = true;
    unserve(wrong, taken);
    return taken;
}

// A flush bio was queued on this CPU and has no request: its getrq is missing.
Index FlushLine::waiter_of_bio(const BlockEvent &e) {
    for (const Waiting &w : m_.devices.of(e.dev).flush_bios) {
        const BioRec &rec = bios_[w.bio];
        if (rec.bio.id != w.id || rec.finished || rec.request != kNil || rec.cpu != e.cpu) continue;
        evidence_.missed(e.dev, w.since_ns, e.ts_ns);
        const Index i = wait_with_bio(e, w.bio);
        requests_[i].entered_ns = w.since_ns;
        return i;
    }
    return kNil;
}

// The CPU's queue has a flush in flight: a flush issued elsewhere belongs to another queue.
bool FlushLine::has_other_flush(const Device &d, std::uint32_t cpu, Index flush) const {
    return std::any_of(d.flushes.begin(), d.flushes.end(), [&](Index f) {
        return f != flush && requests_[f].step == Step::kIssued && requests_[f].r.issue_cpu == cpu;
    });
}

// Fills line_ with the requests waiting for the flush issued now by this CPU's queue, in order of arrival.
void FlushLine::line_for(const BlockEvent &e, Index i) {
    Device &d = m_.devices.of(e.dev);
    std::vector<Index> &line = line_;
    line.clear();
    std::size_t waiting = 0;
    Index other = kNil, going = kNil;
    bool one_cpu = true;
    for (const auto *list : {&d.flush_waiters, &d.second_waiters})
        for (Index w : *list) {
            const ReqRec &rec = requests_[w];
            if ((!rec.waits_flush && !rec.needs_flush) || flush_of(d, rec) != kNil) continue;
            if (runs_.goes_on(d, rec)) {
                if (going == kNil && d.queues.same(rec.r.queue_cpu, e.cpu)) going = w;
                continue;
            }
            const Kinship kin = d.queues.kinship(rec.r.queue_cpu, e.cpu);
            if (kin == Kinship::kPerhaps && has_other_flush(d, rec.r.queue_cpu, i)) continue;
            ++waiting;
            if (d.queues.same(rec.r.queue_cpu, e.cpu)) line.push_back(w);
            else if (kin == Kinship::kApart) continue;
            else if (other == kNil) other = w;
            else one_cpu = one_cpu && rec.r.queue_cpu == requests_[other].r.queue_cpu;
        }
    if (line.empty())
        if (const Index late = waiter_of_bio(e); late != kNil) line.push_back(late);
    ReqRec &flush = requests_[i];
    if (line.empty())
        if (const Index taken = taken_back(e, i, true); taken != kNil) line.push_back(taken);
    // the request came too late for the flush completed just before
    if (line.empty() && other == kNil && going != kNil) {
        line.push_back(going);
        flush.r.ambiguous = true;
    }
    if (line.empty() && other != kNil) {  // the request of a CPU with an unknown queue
        if (one_cpu) d.queues.note_together(requests_[other].r.queue_cpu, e.cpu, 1);
        line.push_back(other);
        flush.r.ambiguous = flush.r.ambiguous || waiting > 1;
    }
    if (line.empty())
        if (const Index taken = taken_back(e, i, false); taken != kNil) line.push_back(taken);
    if (line.empty()) return;
    if (requests_[line.front()].alone) d.queues.note_together(requests_[line.front()].r.queue_cpu, e.cpu, 8);
    std::stable_sort(line.begin(), line.end(),
                     [this](Index a, Index b) { return requests_[a].entered_ns < requests_[b].entered_ns; });
}

// Chooses the waiting requests served by the flush issued now. The flush comes from a worker of the CPU that started
// the flush: the CPU of a new waiter, or of the completion of the flush before. A thread may be delayed between its
// getrq and the line.
void FlushLine::serve_by(const BlockEvent &e, Index i) {
    line_for(e, i);
    const std::vector<Index> &line = line_;
    if (line.empty()) return;
    Device &d = m_.devices.of(e.dev);
    ReqRec &flush = requests_[i];
    const FlushCpu free = free_since(d, e.cpu);
    Index starter = kNil;
    for (Index w : line)
        if (starter == kNil && requests_[w].r.queue_cpu == e.cpu && requests_[w].entered_ns > free.free_ns) starter = w;
    const bool waited = requests_[line.front()].entered_ns <= free.free_ns;
    if (starter != kNil && !waited) {
        const Index first = line.front();
        if (d.queues.kinship(requests_[first].r.queue_cpu, e.cpu) == Kinship::kTogether) starter = first;
        else flush.r.ambiguous = requests_[starter].r.ambiguous = requests_[first].r.ambiguous = true;
        serve(i, starter);
        requests_[starter].started_flush = true;
        return;
    }
    // As long as the queues of CPUs are unknown, the CPU's own flush may serve only the CPU's own requests.
    const bool own = std::any_of(line.begin(), line.end(), [&](Index w) { return requests_[w].r.queue_cpu == e.cpu; });
    for (Index w : line)
        if (own && d.queues.nothing_known(requests_[w].r.queue_cpu, e.cpu))
            flush.r.ambiguous = requests_[w].r.ambiguous = true;
    const std::int64_t started_ns = std::max(requests_[line.front()].entered_ns, free.free_ns);
    for (Index w : line) {
        if (requests_[w].entered_ns > started_ns) break;
        serve(i, w);
    }
}

// The flush in flight that serves the waiter.
Index FlushLine::flush_of(const Device &d, const ReqRec &waiter) const {
    if (waiter.waits_for == 0 || waiter.flush_done) return kNil;
    for (Index f : d.flushes)
        if (requests_[f].r.id == waiter.waits_for) return f;
    return kNil;
}

void FlushLine::serve(Index i, Index w) {
    ReqRec &flush = requests_[i], &waiter = requests_[w];
    waiter.waits_for = flush.r.id;
    const bool second = waiter.empty_flush && waiter.needs_flush;  // of two flushes
    if (!second) waiter.r.flushed_by = flush.r.id;
    Device &d = *flush.device;
    if (waiter.flush_done && !second && d.queues.kinship(waiter.r.queue_cpu, waiter.served_on) == Kinship::kPerhaps)
        d.queues.note_apart(waiter.r.queue_cpu, waiter.served_on, 1);  // the waiter did not resume after the flush
    waiter.served_on = flush.r.issue_cpu;
    waiter.flush_before = waiter.flush_before || waiter.flush_done;
    waiter.flush_done = waiter.started_flush = false;
    if (flush.r.queue_ns == kNoTime) {
        flush.r.queue_ns = waiter.r.queue_ns;
        flush.r.queue_tid = waiter.r.queue_tid;
        flush.r.queue_comm = waiter.r.queue_comm;
        flush.r.cgroup = waiter.r.cgroup;
        flush.r.queue_cpu = waiter.r.queue_cpu;
    }
    flush.r.ambiguous = flush.r.ambiguous || waiter.r.ambiguous;
    flush.r.bios.insert(flush.r.bios.end(), waiter.r.bios.begin(), waiter.r.bios.end());
    if (m_.hooks)
        for (const Owner &o : waiter.r.owners) requests_.add_owner(flush, o);
}

void FlushLine::unserve(Index i, Index w) {
    ReqRec &flush = requests_[i];
    for (std::uint64_t id : requests_[w].r.bios)
        flush.r.bios.erase(std::remove(flush.r.bios.begin(), flush.r.bios.end(), id), flush.r.bios.end());
    flush.r.owners.clear();
    const Device &d = *flush.device;
    if (flush.r.bios.empty()) flush.r.queue_ns = kNoTime;  // the flush serves other requests, of its own CPU
    for (const auto *list : {&d.flush_waiters, &d.second_waiters})
        for (Index other : *list) {
            const ReqRec &rec = requests_[other];
            if (other == w) continue;
            if (flush_of(d, rec) == i)
                for (const Owner &o : rec.r.owners) requests_.add_owner(flush, o);
            else if (flush.r.queue_ns == kNoTime && flush_of(d, rec) == kNil && rec.r.queue_cpu == flush.r.issue_cpu &&
                     (rec.waits_flush || rec.needs_flush) && rec.entered_ns <= flush.r.issue_ns)
                serve(i, other);
        }
}

}  // namespace opline::block_model
