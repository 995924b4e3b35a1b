// SPDX-License-Identifier: MIT
#include "block/flush_turns.hpp"

#include <algorithm>

namespace opline::block_model {
namespace {

constexpr int kSurelyInLine = 5;  // rank of a completion right after the waiter's flush

}  // namespace

// The write (or flush bio's request) ended by a completion without sectors.
Found FlushTurns::empty_to_complete(const BlockEvent &e) {
    if (Index *known = m_.rq_of(e) ? requests_.by_pointer(e.rq) : nullptr)
        if (requests_[*known].step == Step::kDataDone) return {*known, false, true};
    Index of_bio = kNil;
    if (Index *known = m_.bio_of(e) ? bios_.by_pointer(e.bio) : nullptr) of_bio = bios_[*known].request;
    if (of_bio != kNil && requests_[of_bio].r.dev == e.dev &&
        (requests_[of_bio].step == Step::kDataDone || requests_[of_bio].empty_flush))
        return {of_bio, false, true};
    Device &d = m_.devices.of(e.dev);
    const FlushCpu *last = e.cpu != kNoCpu ? d.flush_cpus.find(e.cpu) : nullptr;
    Found found;
    int best = 0;
    for (Index i : d.second_waiters) {
        const ReqRec &rec = requests_[i];
        if (m_.rq_of(e) && rec.r.pointer && rec.r.pointer != e.rq) continue;
        // Depending on the kernel, the event has the first sector of the last bio, or the end of the request.
        const bool here = rec.r.sector == e.sector || rec.r.sector + rec.r.nr_sectors == e.sector ||
                          (!rec.bios.empty() && bios_[rec.bios.back()].bio.sector == e.sector);
        if (!here) continue;
        // The completion comes right after the data, or right after the awaited flush, on the same CPU.
        const bool follows =
            rec.needs_flush ? last && rec.flush_done && rec.waits_for == last->done : rec.r.complete_cpu == e.cpu;
        const int rank = follows ? 2 : 1;
        if (rank == best) found.ambiguous = true;
        if (rank <= best) continue;
        found = {i, false, false};
        best = rank;
    }
    // The place alone proves little if several flushes have the same place: sector 0, or a sector given by
    // device-mapper. After one flush, requests complete in order of arrival.
    if (best < 2 || requests_[found.index].needs_flush)
        if (const Found line = first_in_line(e, best == 0 ? 1 : kSurelyInLine); line)
            if (best < 2 || requests_[line.index].entered_ns < requests_[found.index].entered_ns) return line;
    if (found.ambiguous)
        for (Index i : d.second_waiters) requests_[i].r.ambiguous = true;
    return found;
}

// Whether the completion can be of the flush bio's request, by address and by the bio's sector (given by
// device-mapper).
bool FlushTurns::may_end(const BlockEvent &e, const ReqRec &rec) const {
    if (!rec.empty_flush || (m_.rq_of(e) && rec.r.pointer && rec.r.pointer != e.rq)) return false;
    if (e.sector == 0 || e.sector == kNoSector) return true;
    return !rec.bios.empty() && bios_[rec.bios.back()].bio.sector == e.sector;
}

// How well a completion fits a request waiting for a flush. `last`: the last flush completed on the CPU.
int FlushTurns::place_in_line(const BlockEvent &e, const ReqRec &rec, const FlushCpu *last) const {
    const Device &d = *rec.device;
    if (last && rec.waits_for == last->done && rec.flush_done) return kSurelyInLine;
    if (last && line_.flush_of(d, rec) == kNil && rec.entered_ns <= last->issue_ns &&
        d.queues.same(rec.r.queue_cpu, last->issued_on))
        return 4;
    if (rec.flush_done) return 3;
    return rec.r.queue_cpu == e.cpu ? 2 : 1;
}

// A flush bio's request completes with the awaited flush: right afterwards, on the same CPU.
Found FlushTurns::first_in_line(const BlockEvent &e, int at_least) {
    Device &d = m_.devices.of(e.dev);
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
        const int rank = place_in_line(e, rec, last);
        if (rank >= 4 && d.queues.nothing_known(rec.r.queue_cpu, last->issued_on)) perhaps = true;
        fits = rank > best ? 1 : fits + (rank == best);
        // A request known to wait for a second flush has moved to the end of the line.
        const bool before = rank == best && d.fua == false && rec.entered_ns < requests_[found.index].entered_ns;
        if (rank <= best && !before) continue;
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
    if (best == kSurelyInLine && !found.ambiguous && rec.r.queue_cpu != last->issued_on) d.queues.note_crossed();
    if (rec.alone && last) d.queues.note_together(rec.r.queue_cpu, last->issued_on, 8);
    return found;
}

}  // namespace opline::block_model
