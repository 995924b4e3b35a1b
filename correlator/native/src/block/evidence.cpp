// SPDX-License-Identifier: MIT
// Steps that must have happened, as others show, and that the trace does not have: evidence of a loss that no tracer
// counted. What was in flight when the trace began is none: it is told by how long it took, against the longest that
// the device has taken so far.
#include <algorithm>

#include "block/engine.hpp"

namespace opline::block_model {
namespace {
constexpr std::int64_t kAtLeast_ns = 100'000'000, kTimesLongest = 8;
}  // namespace

void Engine::took(Device &d, std::int64_t begin_ns, std::int64_t end_ns) {
    if (begin_ns != kNoTime) d.longest_ns = std::max(d.longest_ns, end_ns - begin_ns);
}

void Engine::missed(std::uint32_t dev, std::int64_t begin_ns, std::int64_t end_ns, const ReqRec *of) {
    if (hooks_ && hooks_->missed) hooks_->missed(of ? &of->r : nullptr, dev, begin_ns, end_ns);
}

// Its completion is missing. Where pointers say whose, no other request got it.
void Engine::missed_completion(const ReqRec &rec, std::int64_t begin_ns) {
    const bool known = pointers_ && rec.r.pointer != 0 && rec.r.queue_ns != kNoTime && rec.r.issue_ns != kNoTime;
    missed(rec.r.dev, begin_ns, last_ns_, known ? &rec : nullptr);
}

// When whoever waits for the request has gone on without it; kNoTime: nobody has.
std::int64_t Engine::left_ns(const ReqRec &rec) const {
    const std::int64_t ended_ns = hooks_ && hooks_->waiter_ended ? hooks_->waiter_ended(rec.r) : kNoTime;
    return ended_ns != kNoTime && ended_ns < last_ns_ ? ended_ns : kNoTime;
}

// A completion fitted several requests of one place: what the others need to know, should it have been theirs.
void Engine::note_contested(const BlockEvent &e, Index by) {
    const auto &owners = requests_[by].r.owners;
    has_contested_ = true;
    unsigned seen = 0;
    for (Index i = request_starts_.first({e.dev, e.sector}); i != kNil && seen < kChainLimit;
         i = requests_[i].by_start.next, ++seen)
        if (i != by && requests_[i].in_device)
            contend(requests_[i], {e.ts_ns, e.cpu, owners.empty() ? Owner{} : owners.front()});
}

void Engine::contend(ReqRec &rec, const Contested &completion) {
    constexpr std::size_t kMost = 64;
    if (rec.contested.size() >= kMost) rec.contested.erase(rec.contested.begin());
    rec.contested.push_back(completion);
}

// Whoever waits for the request has gone on: the last of those completions whose taker waits still was its own.
const Contested *Engine::contested_by_one_that_waits(const ReqRec &rec) const {
    const auto waits = [this](const Contested &c) { return !has_ended(c.by); };
    const auto it = std::find_if(rec.contested.rbegin(), rec.contested.rend(), waits);
    return it == rec.contested.rend() ? nullptr : &*it;
}

// The request whose completion another one got: whoever waits for it has gone on, and who waits for the other has not.
// So the completion at hand is the other's.
Index Engine::exchanged(const BlockEvent &e) const {
    unsigned seen = 0;
    for (Index i = request_starts_.first({e.dev, e.sector}); i != kNil && seen < kChainLimit;
         i = requests_[i].by_start.next, ++seen) {
        const ReqRec &rec = requests_[i];
        const bool fits = rec.in_device && rec.remaining == e.nr_sectors && same_direction(rec.op, e.rwbs);
        if (!fits || rec.contested.empty() || left_ns(rec) == kNoTime) continue;
        if (contested_by_one_that_waits(rec)) return i;
    }
    return kNil;
}

bool Engine::too_long(const Device &d, std::int64_t begin_ns, std::int64_t end_ns) const {
    return d.completions >= kLearned && end_ns - begin_ns > std::max(kAtLeast_ns, kTimesLongest * d.longest_ns);
}

// A step of a request or a bio of which the step before is not there.
void Engine::came_from_nowhere(const BlockEvent &e) {
    const Device &d = device(e.dev);
    if (first_ns_ != kNoTime && too_long(d, first_ns_, e.ts_ns)) missed(e.dev, e.ts_ns - d.longest_ns, e.ts_ns);
}

// It is allocated or inserted, and completes. What fails before a driver has it is never issued.
void Engine::check_issued(const BlockEvent &e, const ReqRec &rec) {
    if (rec.issue_ordinal != 0 || rec.is_flush || rec.empty_flush || e.error != 0 || rec.r.error != 0 ||
        !rec.device->has_issue)
        return;
    const std::int64_t begin_ns = rec.r.insert_ns != kNoTime ? rec.r.insert_ns : rec.r.getrq_ns;
    if (begin_ns != kNoTime) missed(e.dev, begin_ns, e.ts_ns);
}

// With a scheduler every request is inserted: one that was not among those that were has lost its insert. Without one
// those are that a plug lets go while its thread falls asleep, which may be many in turn, and not nearly all. What a
// flush comes before or behind goes another way.
void Engine::check_inserted(const ReqRec &rec) {
    constexpr std::uint64_t kInTurn = 32;
    Device &d = *rec.device;
    if (rec.is_flush || rec.entry_flags != 0 || rec.r.kind == IoKind::kOther || rec.r.getrq_ns == kNoTime) return;
    if (rec.r.insert_ns != kNoTime) {
        ++d.inserted;
        ++d.inserted_in_turn;
        return;
    }
    ++d.uninserted;
    d.inserts_missing += std::exchange(d.inserted_in_turn, 0) >= kInTurn;
}

// A request of less than its bio has, on a device whose splits are seen: one of them is missing.
void Engine::check_split(const BlockEvent &e) {
    constexpr std::uint64_t kInTurn = 8;
    counts.splits_missing += std::exchange(device(e.dev).split_in_turn, 0) >= kInTurn;
}

// A bio-based device's data go on to another one: a bio that ends without it has lost its remap.
void Engine::check_remapped(const BlockEvent &e, const BioRec &rec) {
    constexpr std::uint64_t kInTurn = 32;
    if (rec.bio.nr_sectors == 0 || rec.bio.queue_ns == kNoTime || (rec.bio.rwbs & rwbs::kDiscard) != 0) return;
    Device &d = device(rec.bio.dev);
    if (rec.mapped) {
        ++d.mapped;
        ++d.mapped_in_turn;
        d.longest_bio_ns = std::max(d.longest_bio_ns, e.ts_ns - rec.bio.queue_ns);
    } else if (std::exchange(d.mapped_in_turn, 0) >= kInTurn) {
        missed(e.dev, rec.bio.queue_ns, e.ts_ns);
    }
}

// It is inserted or issued, on a device whose requests are seen allocated.
void Engine::check_allocated(const BlockEvent &e, Index i) {
    if (e.nr_sectors == 0 || !device(e.dev).has_getrq) return;
    const ReqRec &rec = requests_[i];
    if (!rec.bios.empty()) missed(e.dev, rec.r.queue_ns != kNoTime ? rec.r.queue_ns : e.ts_ns, e.ts_ns);
    else came_from_nowhere(e);
}

// At the trace's end: issued so long ago that the completion must be lost. While the trace goes on nothing is concluded
// from a long time: it may be what the device took. Of a bio-based device a bio's end is lost where all that came of it
// is done, and many that were remapped later have ended.
void Engine::find_overdue() {
    for (Index i = bio_age_.head; i != kNil; i = bios_[i].age.next) {
        const BioRec &rec = bios_[i];
        if (!rec.mapped || rec.children != 0 || rec.bio.queue_ns == kNoTime) continue;
        const Device &d = device(rec.bio.dev);
        counts.bio_ends_missing +=
            d.mapped - rec.ended_before >= kLearned && last_ns_ - rec.bio.queue_ns > d.longest_bio_ns;
    }
    for (Index i = request_age_.head; i != kNil; i = requests_[i].age.next) {
        const ReqRec &rec = requests_[i];
        if (rec.step != Step::kIssued || rec.r.issue_ns == kNoTime ||
            rec.device->completions - rec.dev_completions < kLearned ||
            !too_long(*rec.device, rec.r.issue_ns, last_ns_))
            continue;
        missed_completion(rec, rec.r.issue_ns);
    }
}

}  // namespace opline::block_model
