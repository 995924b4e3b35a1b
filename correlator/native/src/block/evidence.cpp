// SPDX-License-Identifier: MIT
#include "block/evidence.hpp"

#include <algorithm>

namespace opline::block_model {
namespace {

constexpr std::int64_t kAtLeast_ns = 100'000'000, kTimesLongest = 8;

}  // namespace

bool StepEvidence::has_ended(const Owner &owner) const {
    const std::int64_t ended_ns = m_.hooks && m_.hooks->owner_ended ? m_.hooks->owner_ended(owner) : kNoTime;
    return ended_ns != kNoTime && ended_ns < m_.last_ns;
}

void StepEvidence::took(Device &d, std::int64_t begin_ns, std::int64_t end_ns) {
    if (begin_ns != kNoTime) d.longest_ns = std::max(d.longest_ns, end_ns - begin_ns);
}

void StepEvidence::missed(std::uint32_t dev, std::int64_t begin_ns, std::int64_t end_ns, const ReqRec *of) {
    if (m_.hooks && m_.hooks->missed) m_.hooks->missed(of ? &of->r : nullptr, dev, begin_ns, end_ns);
}

// Whether the completion of the request was never recorded; if so, counts the request. A lost record would leave a hole
// in the collector's numbers. A flush without data is never issued; its bio's pointer then counts as the request's
// pointer.
bool StepEvidence::is_unseen(ReqRec &rec) {
    const bool known = rec.empty_flush ? !rec.bios.empty() : rec.r.pointer != 0 && rec.r.issue_ns != kNoTime;
    if (!m_.numbered || !m_.pointers || !known) return false;
    rec.r.unseen = true;
    ++m_.counts.completions_unseen;
    return true;
}

// The request's completion is missing. If pointers identify requests, no other request got the completion.
void StepEvidence::missed_completion(ReqRec &rec, std::int64_t begin_ns) {
    if (is_unseen(rec)) return;
    const bool known = m_.pointers && rec.r.pointer != 0 && rec.r.queue_ns != kNoTime && rec.r.issue_ns != kNoTime;
    missed(rec.r.dev, begin_ns, m_.last_ns, known ? &rec : nullptr);
}

Waiter StepEvidence::waiter(const ReqRec &rec) const {
    return m_.hooks && m_.hooks->waiter ? m_.hooks->waiter(rec.r) : Waiter{};
}

// The time when the request's waiter resumed without a completion; kNoTime: the waiter did not.
std::int64_t StepEvidence::left_ns(const ReqRec &rec) const {
    const std::int64_t ended_ns = waiter(rec).ended_ns;
    return ended_ns != kNoTime && ended_ns < m_.last_ns ? ended_ns : kNoTime;
}

bool StepEvidence::too_long(const Device &d, std::int64_t begin_ns, std::int64_t end_ns) const {
    return d.completions >= kLearned && end_ns - begin_ns > std::max(kAtLeast_ns, kTimesLongest * d.longest_ns);
}

// A step of a request or a bio whose preceding step is missing.
void StepEvidence::came_from_nowhere(const BlockEvent &e) {
    const Device &d = m_.devices.of(e.dev);
    if (m_.first_ns != kNoTime && too_long(d, m_.first_ns, e.ts_ns)) missed(e.dev, e.ts_ns - d.longest_ns, e.ts_ns);
}

// The request is allocated or inserted, and completes without an issue. A request that fails before the driver is never
// issued.
void StepEvidence::check_issued(const BlockEvent &e, const ReqRec &rec) {
    if (rec.issue_ordinal != 0 || rec.is_flush || rec.empty_flush || e.error != 0 || rec.r.error != 0 ||
        !rec.device->has_issue)
        return;
    const std::int64_t begin_ns = rec.r.insert_ns != kNoTime ? rec.r.insert_ns : rec.r.getrq_ns;
    if (begin_ns != kNoTime) missed(e.dev, begin_ns, e.ts_ns);
}

// The request is inserted or issued, on a device with getrq events.
void StepEvidence::check_allocated(const BlockEvent &e, const ReqRec &rec) {
    if (e.nr_sectors == 0 || !m_.devices.of(e.dev).has_getrq) return;
    if (!rec.bios.empty()) missed(e.dev, rec.r.queue_ns != kNoTime ? rec.r.queue_ns : e.ts_ns, e.ts_ns);
    else came_from_nowhere(e);
}

}  // namespace opline::block_model
