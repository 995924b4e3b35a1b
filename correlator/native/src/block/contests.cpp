// SPDX-License-Identifier: MIT
#include "block/contests.hpp"

#include <algorithm>

namespace opline::block_model {

// The completion of `by` may belong to another request that waited at the issue of the same flush: notes the completion
// for each such request.
void Contests::note_contested_flush(const BlockEvent &e, Index by) {
    Device &d = m_.devices.of(e.dev);
    d.waiter_done_ns = e.ts_ns;
    const auto &owners = requests_[by].r.owners;
    if (owners.empty()) return;
    const FlushCpu *last = e.cpu != kNoCpu ? d.flush_cpus.find(e.cpu) : nullptr;
    const auto may_be_its = [&](const ReqRec &rec) {
        const auto served = [&] {
            return d.queues.kinship(rec.r.queue_cpu, last->issued_on) != HardwareQueues::Kinship::kApart;
        };
        return rec.empty_flush && (!last || (rec.entered_ns <= last->issue_ns && served()));
    };
    for (Index w : d.flush_waiters)
        if (w != by && may_be_its(requests_[w])) contend(requests_[w], {e.ts_ns, e.cpu, owners.front()});
}

void Contests::contend(ReqRec &rec, const Contested &completion) {
    constexpr std::size_t kMost = 64;
    if (rec.contested.size() >= kMost) rec.contested.erase(rec.contested.begin());
    rec.contested.push_back(completion);
}

// The request's waiter has resumed without a completion: the latest contested completion whose taker still waits was
// the request's own.
const Contested *Contests::contested_by_one_that_waits(const ReqRec &rec) const {
    const auto waits = [this](const Contested &c) { return !evidence_.has_ended(c.by); };
    const auto it = std::find_if(rec.contested.rbegin(), rec.contested.rend(), waits);
    return it == rec.contested.rend() ? nullptr : &*it;
}

}  // namespace opline::block_model
