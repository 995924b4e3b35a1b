// SPDX-License-Identifier: MIT
// Requests that wait for a flush: which flush each is given to, and whose completion comes behind it
// (block/blk-flush.c).
#include <algorithm>

#include "block/engine.hpp"

namespace opline::block_model {
namespace {
constexpr int kSurelyInLine = 5;  // how well a completion fits one that waits for a flush: it is right behind that
}  // namespace

void Engine::line_up(Device &d, Index i) {
    requests_[i].alone = d.flush_waiters.empty() && d.second_waiters.empty();
    for (const auto *list : {&d.flush_waiters, &d.second_waiters})
        for (Index w : *list) requests_[w].alone = false;
}

// One with data whose getrq is missing looks like one without.
bool Engine::lacks_data(const ReqRec &rec) const {
    return rec.empty_flush && !rec.bios.empty() && bios_[rec.bios.back()].bio.nr_sectors != 0;
}

// Without data, with PREFLUSH and FUA (device-mapper from Linux 6.12 on sends such a bio before its data): where the
// device has no FUA, one flush comes behind the other. Whether it has is not known before: what completes right behind
// the first one has not waited for a second.
bool Engine::waits_for_second_flush(const BlockEvent &e, ReqRec &rec) {
    if (!rec.empty_flush || rec.needs_flush || (rec.entry_flags & rwbs::kFua) == 0) return false;
    if (lacks_data(rec)) return false;
    rec.needs_flush = true;
    rec.entered_ns = e.ts_ns;
    return true;
}

// Who waits for this CPU's flush, given to another CPU's flush though this one's comes as well; own_only: a request of
// this very CPU.
Index Engine::taken_back(const BlockEvent &e, Index flush, bool own_only) {
    Device &d = device(e.dev);
    Index taken = kNil;
    for (const auto *list : {&d.flush_waiters, &d.second_waiters})
        for (Index w : *list) {
            const ReqRec &rec = requests_[w];
            const Index f = rec.waits_flush || rec.needs_flush ? flush_of(d, rec) : kNil;
            if (f == kNil || f == flush || requests_[f].r.issue_cpu == e.cpu) continue;
            if (kinship(d, rec.r.queue_cpu, e.cpu) == Kinship::kApart) continue;
            const bool own = rec.r.queue_cpu == e.cpu;
            if (own_only && !own) continue;
            if (taken == kNil || (own && requests_[taken].r.queue_cpu != e.cpu)) taken = w;
        }
    if (taken == kNil) return kNil;
    const Index wrong = flush_of(d, requests_[taken]);
    if (requests_[taken].r.queue_cpu == e.cpu) note_apart(d, requests_[wrong].r.issue_cpu, e.cpu, 1);
    else requests_[taken].r.ambiguous = true;
    unserve(wrong, taken);
    return taken;
}

// A flush was queued on this CPU and is not known to be allocated: its getrq is missing.
Index Engine::waiter_of_bio(const BlockEvent &e) {
    for (const Waiting &w : device(e.dev).flush_bios) {
        const BioRec &rec = bios_[w.bio];
        if (rec.bio.id != w.id || rec.finished || rec.request != kNil || rec.cpu != e.cpu) continue;
        missed(e.dev, w.since_ns, e.ts_ns);
        const Index i = wait_with_bio(e, w.bio);
        requests_[i].entered_ns = w.since_ns;
        return i;
    }
    return kNil;
}

// That CPU's queue has a flush in flight: then one that is issued elsewhere is of another queue.
bool Engine::has_other_flush(const Device &d, std::uint32_t cpu, Index flush) const {
    return std::any_of(d.flushes.begin(), d.flushes.end(), [&](Index f) {
        return f != flush && requests_[f].step == Step::kIssued && requests_[f].r.issue_cpu == cpu;
    });
}

// The requests that wait for a flush of this CPU's queue, as one is issued now: in scratch_, in order of arrival.
void Engine::line_for(const BlockEvent &e, Index i) {
    Device &d = device(e.dev);
    std::vector<Index> &line = scratch_;
    line.clear();
    std::size_t waiting = 0;
    Index other = kNil, going = kNil;
    bool one_cpu = true;
    for (const auto *list : {&d.flush_waiters, &d.second_waiters})
        for (Index w : *list) {
            const ReqRec &rec = requests_[w];
            if ((!rec.waits_flush && !rec.needs_flush) || flush_of(d, rec) != kNil) continue;
            if (goes_on(d, rec)) {
                if (going == kNil && same_queue(d, rec.r.queue_cpu, e.cpu)) going = w;
                continue;
            }
            const Kinship kin = kinship(d, rec.r.queue_cpu, e.cpu);
            if (kin == Kinship::kPerhaps && has_other_flush(d, rec.r.queue_cpu, i)) continue;
            ++waiting;
            if (same_queue(d, rec.r.queue_cpu, e.cpu)) line.push_back(w);
            else if (kin == Kinship::kApart) continue;
            else if (other == kNil) other = w;
            else one_cpu = one_cpu && rec.r.queue_cpu == requests_[other].r.queue_cpu;
        }
    if (line.empty())
        if (const Index late = waiter_of_bio(e); late != kNil) line.push_back(late);
    ReqRec &flush = requests_[i];
    if (line.empty())
        if (const Index taken = taken_back(e, i, true); taken != kNil) line.push_back(taken);
    if (line.empty() && other == kNil && going != kNil) {  // it came too late for the one that has just completed
        line.push_back(going);
        flush.r.ambiguous = true;
    }
    if (line.empty() && other != kNil) {  // of a CPU of which nothing was known
        if (one_cpu) note_together(d, requests_[other].r.queue_cpu, e.cpu, 1);
        line.push_back(other);
        flush.r.ambiguous = flush.r.ambiguous || waiting > 1;
    }
    if (line.empty())
        if (const Index taken = taken_back(e, i, false); taken != kNil) line.push_back(taken);
    if (line.empty()) return;
    if (requests_[line.front()].alone) note_together(d, requests_[line.front()].r.queue_cpu, e.cpu, 8);
    std::stable_sort(line.begin(), line.end(),
                     [this](Index a, Index b) { return requests_[a].entered_ns < requests_[b].entered_ns; });
}

// Which waiting requests a flush that is issued now is for. It comes from a worker of the CPU that started it: where a
// request began to wait, or where the flush before it completed. A thread may be held up between its getrq and the
// line.
void Engine::serve_by(const BlockEvent &e, Index i) {
    line_for(e, i);
    const std::vector<Index> &line = scratch_;
    if (line.empty()) return;
    Device &d = device(e.dev);
    ReqRec &flush = requests_[i];
    const FlushCpu free = free_since(d, e.cpu);
    Index starter = kNil;
    for (Index w : line)
        if (starter == kNil && requests_[w].r.queue_cpu == e.cpu && requests_[w].entered_ns > free.free_ns) starter = w;
    const bool waited = requests_[line.front()].entered_ns <= free.free_ns;
    if (starter != kNil && !waited) {
        const Index first = line.front();
        if (kinship(d, requests_[first].r.queue_cpu, e.cpu) == Kinship::kTogether) starter = first;
        else flush.r.ambiguous = requests_[starter].r.ambiguous = requests_[first].r.ambiguous = true;
        serve(i, starter);
        requests_[starter].started_flush = true;
        return;
    }
    // Where nothing says yet who shares a queue, it may be that this CPU's own flush is for this CPU's own requests.
    const bool own = std::any_of(line.begin(), line.end(), [&](Index w) { return requests_[w].r.queue_cpu == e.cpu; });
    for (Index w : line)
        if (own && nothing_known(d, requests_[w].r.queue_cpu, e.cpu))
            flush.r.ambiguous = requests_[w].r.ambiguous = true;
    const std::int64_t started_ns = std::max(requests_[line.front()].entered_ns, free.free_ns);
    for (Index w : line) {
        if (requests_[w].entered_ns > started_ns) break;
        serve(i, w);
    }
}

// flush_end_io() completes what a flush was for with interrupts off: right behind it, and until its CPU does something
// else, whatever other CPUs do meanwhile.
void Engine::begin_run(FlushCpu &of, const BlockEvent &e) {
    of.goes_on = 0;
    if (e.kind != BlockKind::kRqComplete || e.cpu >= kMostCpus) return;  // given up: nothing comes behind it
    if (e.cpu >= last_on_cpu_.size()) last_on_cpu_.resize(e.cpu + 1);
    of.goes_on = last_on_cpu_[e.cpu] = now_;
}

void Engine::keep_run(const BlockEvent &e) {
    FlushCpu *of = e.cpu < last_on_cpu_.size() ? device(e.dev).flush_cpus.find(e.cpu) : nullptr;
    if (of && of->goes_on == before_) of->goes_on = now_;
}

// Its flush is complete, and what that was for is completing now.
bool Engine::goes_on(const Device &d, const ReqRec &waiter) const {
    if (!waiter.flush_done || waiter.done_cpu >= last_on_cpu_.size()) return false;
    const FlushCpu *of = d.flush_cpus.find(waiter.done_cpu);
    if (!of || of->ambiguous || of->goes_on == 0 || of->done != waiter.waits_for) return false;
    return of->goes_on == last_on_cpu_[waiter.done_cpu];
}

// The flush in flight that serves it.
Index Engine::flush_of(const Device &d, const ReqRec &waiter) const {
    if (waiter.waits_for == 0 || waiter.flush_done) return kNil;
    for (Index f : d.flushes)
        if (requests_[f].r.id == waiter.waits_for) return f;
    return kNil;
}

void Engine::serve(Index i, Index w) {
    ReqRec &flush = requests_[i], &waiter = requests_[w];
    waiter.waits_for = flush.r.id;
    const bool second = waiter.empty_flush && waiter.needs_flush;  // of two flushes
    if (!second) waiter.r.flushed_by = flush.r.id;
    Device &d = *flush.device;
    if (waiter.flush_done && !second && kinship(d, waiter.r.queue_cpu, waiter.served_on) == Kinship::kPerhaps)
        note_apart(d, waiter.r.queue_cpu, waiter.served_on, 1);  // it has not gone on behind that flush
    waiter.served_on = flush.r.issue_cpu;
    waiter.flush_before = waiter.flush_before || waiter.flush_done;
    waiter.flush_done = waiter.started_flush = false;
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
    if (flush.r.bios.empty()) flush.r.queue_ns = kNoTime;  // it is for others, of its own CPU
    for (const auto *list : {&d.flush_waiters, &d.second_waiters})
        for (Index other : *list) {
            const ReqRec &rec = requests_[other];
            if (other == w) continue;
            if (flush_of(d, rec) == i)
                for (const Owner &o : rec.r.owners) add_owner(flush, o);
            else if (flush.r.queue_ns == kNoTime && flush_of(d, rec) == kNil && rec.r.queue_cpu == flush.r.issue_cpu &&
                     (rec.waits_flush || rec.needs_flush) && rec.entered_ns <= flush.r.issue_ns)
                serve(i, other);
        }
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
    Device &d = device(e.dev);
    const FlushCpu *last = e.cpu != kNoCpu ? d.flush_cpus.find(e.cpu) : nullptr;
    Found found;
    int best = 0;
    for (Index i : d.second_waiters) {
        const ReqRec &rec = requests_[i];
        if (rq_of(e) && rec.r.pointer && rec.r.pointer != e.rq) continue;
        // It names the sector where its last bio begins, or where it ended: that depends on the kernel.
        const bool here = rec.r.sector == e.sector || rec.r.sector + rec.r.nr_sectors == e.sector ||
                          (!rec.bios.empty() && bios_[rec.bios.back()].bio.sector == e.sector);
        if (!here) continue;
        // It comes right behind its data, or behind the flush that it waited for, on the same CPU.
        const bool follows =
            rec.needs_flush ? last && rec.flush_done && rec.waits_for == last->done : rec.r.complete_cpu == e.cpu;
        const int rank = follows ? 2 : 1;
        if (rank == best) found.ambiguous = true;
        if (rank <= best) continue;
        found = {i, false, false};
        best = rank;
    }
    // Its place alone says little where flushes have the same, sector 0 or what device-mapper gave them. Behind one
    // flush they complete in order of arrival.
    if (best < 2 || requests_[found.index].needs_flush)
        if (const Found line = first_in_line(e, best == 0 ? 1 : kSurelyInLine); line)
            if (best < 2 || requests_[line.index].entered_ns < requests_[found.index].entered_ns) return line;
    if (found.ambiguous)
        for (Index i : d.second_waiters) requests_[i].r.ambiguous = true;
    return found;
}

// Is it a flush bio's request, as far as its address and its bio's sector (where device-mapper made it) say?
bool Engine::may_end(const BlockEvent &e, const ReqRec &rec) const {
    if (!rec.empty_flush || (rq_of(e) && rec.r.pointer && rec.r.pointer != e.rq)) return false;
    if (e.sector == 0 || e.sector == kNoSector) return true;
    return !rec.bios.empty() && bios_[rec.bios.back()].bio.sector == e.sector;
}

// A flush bio's request completes with the flush that it waited for: right after it, on the same CPU.
Found Engine::first_in_line(const BlockEvent &e, int at_least) {
    Device &d = device(e.dev);
    const FlushCpu *last = e.cpu != kNoCpu ? d.flush_cpus.find(e.cpu) : nullptr;
    if (last && last->done == 0) last = nullptr;
    Found found;
    int best = 0;
    unsigned fits = 0, waiting = 0;
    bool perhaps = false;
    for (Index i : d.flush_waiters) {
        const ReqRec &rec = requests_[i];
        if (!may_end(e, rec)) continue;
        ++waiting;
        const bool of_last = last && rec.waits_for == last->done && rec.flush_done;
        const bool in_line = last && flush_of(d, rec) == kNil && rec.entered_ns <= last->issue_ns &&
                             same_queue(d, rec.r.queue_cpu, last->issued_on);
        const int rank = of_last ? kSurelyInLine : in_line ? 4 : rec.flush_done ? 3 : rec.r.queue_cpu == e.cpu ? 2 : 1;
        if (rank >= 4 && nothing_known(d, rec.r.queue_cpu, last->issued_on)) perhaps = true;
        fits = rank > best ? 1 : fits + (rank == best);
        if (rank <= best) continue;
        best = rank;
        found.index = i;
    }
    if (!found || best < at_least || (best < 4 && d.owed > 0)) return {};
    ReqRec &rec = requests_[found.index];
    found.ambiguous =
        (fits > 1 && (best < 4 || perhaps)) || (waiting > 1 && last && last->ambiguous) || d.blind_ns >= rec.entered_ns;
    if (found.ambiguous)
        for (Index i : d.flush_waiters) requests_[i].r.ambiguous = true;
    if (found.ambiguous || (best < kSurelyInLine && waiting > 1)) d.doubt_ns = e.ts_ns;
    if (best == kSurelyInLine && !found.ambiguous && rec.r.queue_cpu != last->issued_on) ++d.crossed;
    if (rec.alone && last) note_together(d, rec.r.queue_cpu, last->issued_on, 8);
    return found;
}

}  // namespace opline::block_model
