// SPDX-License-Identifier: MIT
#include "block/reissues.hpp"

namespace opline::block_model {

// The request in flight that the driver refused and the kernel now issues again; kNil: none. The kernel tells of the
// refusal (block_rq_requeue), but a capture of just issues and completions lacks this event. The queue stops until the
// second issue (blk_mq_dispatch_rq_list() in block/blk-mq.c): a second issue at the same place is the same request if
// the queue, or the CPU, has issued nothing else in between.
Index Reissues::issued_again(const BlockEvent &e) {
    if (m_.rq_of(e) || e.nr_sectors == 0 || bios_.first_at({e.dev, e.sector}) != kNil) return kNil;
    const Device &d = m_.devices.of(e.dev);
    const std::uint64_t on_cpu = e.cpu < d.last_issue_on.size() ? d.last_issue_on[e.cpu] : 0;
    unsigned seen = 0;
    for (Index i = requests_.places().first({e.dev, e.sector}); i != kNil && seen < kChainLimit; ++seen) {
        const ReqRec &rec = requests_[i];
        if (rec.step == Step::kIssued && rec.remaining == e.nr_sectors && finder_.can_be_about(e, rec) &&
            (rec.r.id == d.last_issue || rec.r.id == on_cpu))
            return i;
        i = rec.by_start.next;
    }
    return kNil;
}

void Reissues::note_issue(const BlockEvent &e, Index i) {
    if (m_.pointers && e.rq) return;
    Device &d = m_.devices.of(e.dev);
    d.last_issue = requests_[i].r.id;
    if (e.cpu >= kMostCpus) return;
    if (e.cpu >= d.last_issue_on.size()) d.last_issue_on.resize(e.cpu + 1);
    d.last_issue_on[e.cpu] = d.last_issue;
}

void Reissues::note_reissue(const BlockEvent &e, Index i) {
    constexpr std::size_t kMost = 64;
    ReqRec &rec = requests_[i];
    m_.says(Conclusion::Hop::kIssue, rec.ordinal, false, rec.r.ambiguous);
    ++rec.r.requeues;
    std::deque<BlockEvent> &reissues = m_.devices.of(e.dev).reissues;
    if (reissues.size() == kMost) reissues.pop_front();
    reissues.push_back(e);
}

// A completion without a request in flight, at a place with two issues: the issues were two requests at once.
Index Reissues::second_of_reissue(const BlockEvent &e) {
    std::deque<BlockEvent> &reissues = m_.devices.of(e.dev).reissues;
    for (auto it = reissues.begin(); it != reissues.end(); ++it) {
        if (it->sector != e.sector || it->nr_sectors != e.nr_sectors || !same_direction(it->rwbs, e.rwbs)) continue;
        const BlockEvent issued = *it;
        reissues.erase(it);
        const Index i = requests_.make(issued, issued.sector, issued.nr_sectors);
        requests_.places().enter(i);
        requests_.begin_issue(issued, i);
        requests_[i].r.ambiguous = true;
        return i;
    }
    return kNil;
}

}  // namespace opline::block_model
