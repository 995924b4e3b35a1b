// SPDX-License-Identifier: MIT
#include "block/lost_requests.hpp"

namespace opline::block_model {
namespace {

constexpr std::size_t kMostStuck = 64;  // requests that a device leaves behind while it completes many others
// An open request that so many later ones of its device have overtaken is given up. The deepest queues in use (NVMe)
// have 1024 entries.
constexpr std::uint64_t kOvertaken = 16'384;

}  // namespace

// A capture can lack a device's completions by nature: perf that records some processes sees those that interrupted
// them. Where many requests were overtaken by 16 times as many as 99 % of the completed ones, theirs never come.
void LostRequests::give_up_missing(std::size_t most) {
    auto old = [](const ReqRec &rec) {
        const Device &d = *rec.device;
        const std::uint64_t overtaken = d.completions - rec.dev_completions;
        if (!rec.in_device || overtaken <= kMostStuck) return false;
        const std::uint64_t seldom = d.order.seldom_overtaken();
        return seldom != 0 && overtaken > 16 * seldom;
    };
    FlatMap<Device *, std::size_t> olds;
    for (Index i = requests_.oldest(); i != kNil; i = requests_[i].age.next)
        if (old(requests_[i])) ++olds[requests_[i].device];
    bool any = false;
    olds.for_each([&](Device *d, std::size_t n) {
        m_.counts.incomplete_devices += n > most && !d->misses_completions;
        d->misses_completions = d->misses_completions || n > most;
        any = any || d->misses_completions;
    });
    for (Index i = any ? requests_.oldest() : kNil, next = kNil; i != kNil; i = next) {
        next = requests_[i].age.next;
        if (!requests_[i].device->misses_completions || !old(requests_[i])) continue;
        ++m_.counts.presumed_lost;
        ReqRec &rec = requests_[i];
        if (rec.r.issue_ns != kNoTime && !evidence_.is_unseen(rec))
            evidence_.missed(rec.r.dev, rec.r.issue_ns, m_.last_ns);
        requests_.close(i);
    }
}

// Open requests that so many later ones have overtaken are not waited for any longer.
void LostRequests::give_up_overtaken() {
    while (requests_.oldest() != kNil) {
        ReqRec &rec = requests_[requests_.oldest()];
        if (rec.device->completions - rec.dev_completions <= kOvertaken) return;
        ++m_.counts.presumed_lost;
        if (rec.r.issue_ns != kNoTime && !evidence_.is_unseen(rec))
            evidence_.missed(rec.r.dev, rec.r.issue_ns, m_.last_ns);
        requests_.close(requests_.oldest());
    }
}

// At the trace's end: issued so long ago that the completion must be lost. While the trace goes on nothing is concluded
// from a long time: it may be what the device took.
void LostRequests::find_overdue() {
    for (Index i = requests_.oldest(); i != kNil; i = requests_[i].age.next) {
        ReqRec &rec = requests_[i];
        if (rec.step != Step::kIssued || rec.r.issue_ns == kNoTime ||
            rec.device->completions - rec.dev_completions < kLearned ||
            !evidence_.too_long(*rec.device, rec.r.issue_ns, m_.last_ns))
            continue;
        evidence_.missed_completion(rec, rec.r.issue_ns);
    }
}

void LostRequests::look() {
    give_up_overtaken();
    if (const auto open = requests_.live(); open > kMostStuck && m_.now >= next_look_) {
        give_up_missing(kMostStuck);
        next_look_ = m_.now + open / 4;  // a look goes through all of them: some four an event
    }
}

}  // namespace opline::block_model
