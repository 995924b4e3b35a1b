// SPDX-License-Identifier: MIT
#include "block/flush_losses.hpp"

#include <algorithm>

namespace opline::block_model {

// A thread queues a flush: it waits for the one that it queued before no longer.
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
        // A completion that was given to another may have been its own. Then that one's is still to come, and is its.
        line_.doubt_waiters(d);
        return;
    }
    if (left) return settle_left(e, *waiter, true);
    if (of_bio || !evidence_.is_unseen(requests_[*waiter])) evidence_.missed(e.dev, since_ns, e.ts_ns);
    ++m_.counts.presumed_lost;
    if (of_bio) bios_.close(bio->bio);
    else requests_.close(*waiter);
}

// Whoever waited for the flush has gone on: its completion is lost, and so is the flush's, if that is still in flight
// and no other one before it was for the request.
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

// What a flush was for goes on before the next one of its queue is issued. Who did not has lost its completion: the
// first in line at once; of others it may be that they came too late for the flush before, several times if their CPU
// was taken away. Of an op's requests its end says more.
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

// Whoever waits for the request has gone on, and who got its completion has not.
bool FlushLosses::was_anothers(const ReqRec &rec) const {
    return rec.empty_flush && evidence_.left_ns(rec) != kNoTime &&
           contests_.contested_by_one_that_waits(rec) != nullptr;
}

// Whoever waits for the request has gone on. Its completion is lost, or another one got it, and has its own to come.
// Who has not gone on by the time of the next flush's completion waits for more than a CPU.
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

// What a flush was for completes soon behind it, though other queues' flushes may be issued in between. What is still
// to come when so many have been, and none is in flight, is lost as well.
void FlushLosses::give_up_owed(Device &d) {
    constexpr std::uint64_t kIssuesBetween = 8;
    if (d.owed == 0 || !d.flushes.empty() || d.flush_issues < d.owed_issues + kIssuesBetween) return;
    m_.counts.presumed_lost += d.owed;
    d.owed = 0;
}

}  // namespace opline::block_model
