// SPDX-License-Identifier: MIT
#include "block/flush_losses.hpp"

#include <algorithm>

namespace opline::block_model {

// A thread queues a flush, so the thread no longer waits for its flush before.
void FlushLosses::check_flush_before(const BlockEvent &e) {
    if (e.tid <= 0) return;
    Device &d = m_.devices.of(e.dev);
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
    const bool left = !of_bio && evidence_.left_ns(requests_[*waiter]) != kNoTime;
    if (!left) {
        if (d.flush_done_ns < since_ns) {
            ++d.flushes_beside;
            return;
        }
        if (d.flushes_alone < 4 * d.flushes_beside) return;
    }
    if (!of_bio && d.waiter_done_ns >= since_ns) {
        // The request may have lost its completion to another request. The other request's completion is then still to
        // come, and belongs to this request.
        line_.doubt_waiters(d);
        return;
    }
    if (left) return settle_left(e, *waiter, true);
    if (of_bio || !evidence_.is_unseen(requests_[*waiter])) evidence_.missed(e.dev, since_ns, e.ts_ns);
    ++m_.counts.presumed_lost;
    if (of_bio) bios_.close(bio->bio);
    else requests_.close(*waiter);
}

// The flush's waiter has resumed: the request's completion is lost. The flush's completion is lost as well if the flush
// is still in flight and no earlier flush served the request.
void FlushLosses::give_up_waiter(const BlockEvent &e, Index i) {
    ReqRec &rec = requests_[i];
    Device &d = m_.devices.of(e.dev);
    Index flush = line_.flush_of(d, rec);
    if (flush != kNil && rec.flush_before) {
        line_.unserve(flush, i);
        flush = kNil;
    }
    if (!evidence_.is_unseen(rec))
        evidence_.missed(e.dev, rec.entered_ns, std::max(rec.entered_ns, evidence_.left_ns(rec)));
    ++m_.counts.presumed_lost;
    requests_.close(i);
    if (flush == kNil) return;
    ++m_.counts.presumed_lost;
    evidence_.is_unseen(requests_[flush]);
    line_.flush_completed(e, flush);
    requests_.close(flush);
}

// The requests served by a flush resume before the next flush of the queue is issued. A request that did not has lost
// its completion: the first in line at once; a later request may have missed several flushes if its CPU was taken away.
// For an op's request the op's end is a better proof.
void FlushLosses::give_up_waiters(const BlockEvent &e) {
    Device &d = m_.devices.of(e.dev);
    lost_.clear();
    for (const auto *list : {&d.flush_waiters, &d.second_waiters})
        for (Index w : *list) {
            const ReqRec &rec = requests_[w];
            const std::uint32_t most = rec.r.owners.empty() || line_.lacks_data(rec) ? 2 : kManyMissed;
            if (rec.flush_done && rec.flush_missed >= most && !runs_.goes_on(d, rec) &&
                (d.misses_completions || d.doubt_ns < rec.entered_ns) &&
                d.queues.kinship(rec.r.queue_cpu, e.cpu) == Kinship::kTogether)
                lost_.push_back(w);
        }
    for (std::size_t k = 0; k < lost_.size(); ++k) {
        ++m_.counts.presumed_lost;
        requests_.close(lost_[k]);
    }
}

void FlushLosses::give_up_left(const BlockEvent &e) {
    lost_.clear();
    for (Index w : m_.devices.of(e.dev).flush_waiters)
        if (requests_[w].empty_flush && !requests_[w].r.pointer && evidence_.left_ns(requests_[w]) != kNoTime)
            lost_.push_back(w);
    const bool flush_done = e.kind == BlockKind::kRqComplete && (e.rwbs & rwbs::kFlush) != 0;
    for (std::size_t k = 0; k < lost_.size(); ++k) settle_left(e, lost_[k], flush_done);
}

// The request's waiter has resumed, and the waiter of the request that got the completion has not.
bool FlushLosses::was_anothers(const ReqRec &rec) const {
    return rec.empty_flush && evidence_.left_ns(rec) != kNoTime &&
           contests_.contested_by_one_that_waits(rec) != nullptr;
}

// The request's waiter has resumed. Either the completion is lost, or another request got the completion and will get
// this request's completion later. A taker that has not resumed by the completion of the next flush waits for more than
// a CPU.
void FlushLosses::settle_left(const BlockEvent &e, Index i, bool next_flush_done) {
    ReqRec &rec = requests_[i];
    const Contested *taken = contests_.contested_by_one_that_waits(rec);
    if (!taken) return give_up_waiter(e, i);
    if (!next_flush_done) return;
    if (const Index flush = line_.flush_of(*rec.device, rec); flush != kNil) line_.unserve(flush, i);
    BlockEvent own = e;
    own.ts_ns = taken->at_ns;
    own.cpu = taken->cpu;
    ++rec.device->owed;
    rec.device->owed_issues = rec.device->flush_issues;
    rec.r.ambiguous = true;
    requests_.completed(own, i);
    rec.r.end_ns = own.ts_ns;
    requests_.close(i);
}

// The requests served by a flush complete soon after the flush; meanwhile other queues may issue flushes. After
// kIssuesBetween flushes, with none in flight, the completions still owed are lost.
void FlushLosses::give_up_owed(Device &d) {
    constexpr std::uint64_t kIssuesBetween = 8;
    if (d.owed == 0 || !d.flushes.empty() || d.flush_issues < d.owed_issues + kIssuesBetween) return;
    m_.counts.presumed_lost += d.owed;
    d.owed = 0;
}

}  // namespace opline::block_model
