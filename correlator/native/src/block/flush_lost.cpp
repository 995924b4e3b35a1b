// SPDX-License-Identifier: MIT
// Requests that wait for a flush which is done: whose completion is lost, and whose another request got
// (block/blk-flush.c completes them right behind the flush). A thread may be held up between its getrq and the line, so
// that it comes too late for the flush that seems its own; that it has gone on says that its own has completed.
#include <algorithm>

#include "block/engine.hpp"

namespace opline::block_model {

// Whoever waited for the flush has gone on: its completion is lost, and so is the flush's, if that is still in flight
// and no other one before it was for the request.
void Engine::give_up_waiter(const BlockEvent &e, Index i) {
    const ReqRec &rec = requests_[i];
    Device &d = device(e.dev);
    Index flush = flush_of(d, rec);
    if (flush != kNil && rec.flush_before) {
        unserve(flush, i);
        flush = kNil;
    }
    missed(e.dev, rec.entered_ns, std::max(rec.entered_ns, left_ns(rec)));
    ++counts.presumed_lost;
    close_request(i);
    if (flush == kNil) return;
    ++counts.presumed_lost;
    flush_completed(e, flush);
    close_request(flush);
}

// What a flush was for goes on before the next one of its queue is issued. Who did not has lost its completion: the
// first in line at once; of others it may be that they came too late for the flush before, several times if their CPU
// was taken away. Of an op's requests its end says more.
void Engine::give_up_waiters(const BlockEvent &e) {
    Device &d = device(e.dev);
    scratch_.clear();
    for (const auto *list : {&d.flush_waiters, &d.second_waiters})
        for (Index w : *list) {
            const ReqRec &rec = requests_[w];
            const std::uint32_t most = rec.r.owners.empty() || lacks_data(rec) ? 2 : kManyMissed;
            if (rec.flush_done && rec.flush_missed >= most && !goes_on(d, rec) &&
                (d.misses_completions || d.doubt_ns < rec.entered_ns) &&
                kinship(d, rec.r.queue_cpu, e.cpu) == Kinship::kTogether)
                scratch_.push_back(w);
        }
    for (std::size_t k = 0; k < scratch_.size(); ++k) {
        ++counts.presumed_lost;
        close_request(scratch_[k]);
    }
}

void Engine::give_up_left(const BlockEvent &e) {
    scratch_.clear();
    for (Index w : device(e.dev).flush_waiters)
        if (requests_[w].empty_flush && !requests_[w].r.pointer && left_ns(requests_[w]) != kNoTime)
            scratch_.push_back(w);
    const bool flush_done = e.kind == BlockKind::kRqComplete && (e.rwbs & rwbs::kFlush) != 0;
    for (std::size_t k = 0; k < scratch_.size(); ++k) settle_left(e, scratch_[k], flush_done);
}

// Whoever waits for the request has gone on, and who got its completion has not.
bool Engine::was_anothers(const ReqRec &rec) const {
    return rec.empty_flush && left_ns(rec) != kNoTime && contested_by_one_that_waits(rec) != nullptr;
}

// Whoever waits for the request has gone on. Its completion is lost, or another one got it, and has its own to come.
// Who has not gone on by the time of the next flush's completion waits for more than a CPU.
void Engine::settle_left(const BlockEvent &e, Index i, bool next_flush_done) {
    ReqRec &rec = requests_[i];
    const Contested *taken = contested_by_one_that_waits(rec);
    if (!taken) return give_up_waiter(e, i);
    if (!next_flush_done) return;
    if (const Index flush = flush_of(*rec.device, rec); flush != kNil) unserve(flush, i);
    BlockEvent own = e;
    own.ts_ns = taken->at_ns;
    own.cpu = taken->cpu;
    ++rec.device->owed;
    rec.device->owed_issues = rec.device->flush_issues;
    rec.r.ambiguous = true;
    completed(own, i);
    rec.r.end_ns = own.ts_ns;
    close_request(i);
}

// What a flush was for completes soon behind it, though other queues' flushes may be issued in between. What is still
// to come when so many have been, and none is in flight, is lost as well.
void Engine::give_up_owed(Device &d) {
    constexpr std::uint64_t kIssuesBetween = 8;
    if (d.owed == 0 || !d.flushes.empty() || d.flush_issues < d.owed_issues + kIssuesBetween) return;
    counts.presumed_lost += d.owed;
    d.owed = 0;
}

bool Engine::has_ended(const Owner &owner) const {
    const std::int64_t ended_ns = hooks_ && hooks_->owner_ended ? hooks_->owner_ended(owner) : kNoTime;
    return ended_ns != kNoTime && ended_ns < last_ns_;
}

// The completion may have been that of another one that waited when the flush before it was issued: what it needs to
// know, should it have been.
void Engine::note_contested_flush(const BlockEvent &e, Index by) {
    Device &d = device(e.dev);
    d.waiter_done_ns = e.ts_ns;
    const auto &owners = requests_[by].r.owners;
    if (owners.empty()) return;
    const FlushCpu *last = e.cpu != kNoCpu ? d.flush_cpus.find(e.cpu) : nullptr;
    const auto may_be_its = [&](const ReqRec &rec) {
        const auto served = [&] { return kinship(d, rec.r.queue_cpu, last->issued_on) != Kinship::kApart; };
        return rec.empty_flush && (!last || (rec.entered_ns <= last->issue_ns && served()));
    };
    for (Index w : d.flush_waiters)
        if (w != by && may_be_its(requests_[w])) contend(requests_[w], {e.ts_ns, e.cpu, owners.front()});
}

}  // namespace opline::block_model
