// SPDX-License-Identifier: MIT
// Requests in memory: made, given bios and owners, found by place and pointer, closed and reported.
#include <algorithm>
#include <utility>

#include "block/engine.hpp"

namespace opline::block_model {

Device &Engine::look_up(std::uint32_t dev) {
    auto &device = devices_[dev];
    if (!device) device = std::make_unique<Device>();
    return *device;
}

Index Engine::new_request(const BlockEvent &e, std::uint64_t sector, std::uint32_t nr_sectors) {
    const Index i = requests_.take();
    ReqRec &rec = requests_[i];
    rec.ordinal = now_;
    rec.device = &device(e.dev);
    rec.dev_completions = rec.device->completions;
    rec.start = sector;
    rec.remaining = nr_sectors;
    rec.op = e.rwbs & kDirection;
    Request &r = rec.r;
    r.id = next_request_++;
    r.dev = e.dev;
    r.sector = nr_sectors > 0 ? sector : kNoSector;
    r.nr_sectors = nr_sectors;
    r.rwbs = e.rwbs;
    r.kind = BlockModel::kind_of(e.rwbs, nr_sectors);
    append<ReqRec, &ReqRec::age>(requests_, request_age_, i);
    if (requests_.live() > kOpenLimit && request_age_.head != i) {
        ++counts.evicted;
        close_request(request_age_.head);
    }
    return i;
}

// It begins and extends otherwise, or cannot grow any more. Its turn among those of its place stays while that does.
void Engine::rekey(Index i, std::uint64_t start, std::uint32_t remaining) {
    ReqRec &rec = requests_[i];
    const bool grows = rec.step == Step::kAllocated || rec.step == Step::kInserted;
    if (rec.at_start && start != rec.start) {
        request_starts_.remove(requests_, {rec.r.dev, rec.start}, i);
        rec.at_start = false;
    }
    if (!grows || start + remaining != rec.start + rec.remaining) leave_end(i);
    rec.start = start;
    rec.remaining = remaining;
    enter_chains(i);
}

void Engine::enter_chains(Index i) {
    ReqRec &rec = requests_[i];
    if (rec.is_flush || rec.remaining == 0) return;
    if (!rec.at_start) request_starts_.add(requests_, {rec.r.dev, rec.start}, i);
    rec.at_start = true;
    if (rec.step != Step::kAllocated && rec.step != Step::kInserted) return;
    if (rec.at_end) return;
    rec.at_end = true;
    rec.end_order = ++end_orders_;
    if (has_merges_) request_ends_.add(requests_, {rec.r.dev, rec.start + rec.remaining}, i);
}

void Engine::leave_end(Index i) {
    ReqRec &rec = requests_[i];
    if (!rec.at_end) return;
    rec.at_end = false;
    if (has_merges_) request_ends_.remove(requests_, {rec.r.dev, rec.start + rec.remaining}, i);
}

// Who ends where is looked up by merges alone: it is not kept before the first one.
void Engine::keep_ends() {
    if (has_merges_) return;
    has_merges_ = true;
    std::vector<Index> growing;
    for (Index i = request_age_.head; i != kNil; i = requests_[i].age.next)
        if (requests_[i].at_end) growing.push_back(i);
    std::sort(growing.begin(), growing.end(),
              [this](Index a, Index b) { return requests_[a].end_order < requests_[b].end_order; });
    for (Index i : growing)
        request_ends_.add(requests_, {requests_[i].r.dev, requests_[i].start + requests_[i].remaining}, i);
}

void Engine::leave_chains(Index i) {
    ReqRec &rec = requests_[i];
    if (rec.at_start) request_starts_.remove(requests_, {rec.r.dev, rec.start}, i);
    rec.at_start = false;
    leave_end(i);
}

void Engine::add_owner(ReqRec &rec, const Owner &owner) {
    if (!owner) return;
    for (auto it = rec.r.owners.rbegin(); it != rec.r.owners.rend(); ++it)
        if (it->op == owner.op && it->batch == owner.batch) return;
    rec.r.owners.push_back(owner);
}

// The bio is the request's from now on: its first (front) or last one.
void Engine::attach(Index b, Index i, bool front, bool by_pointer) {
    BioRec &bio = bios_[b];
    ReqRec &rec = requests_[i];
    leave_place(b);
    bio.request = i;
    bio.bio.request = rec.r.id;
    bio.confirmed = by_pointer;
    rec.bio_sectors += bio.bio.nr_sectors;
    rec.r.ambiguous = rec.r.ambiguous || bio.ambiguous;
    if (rec.bios.empty()) {  // not the first in sectors: the one that the request was allocated for
        rec.r.queue_tid = bio.bio.tid;
        rec.r.queue_comm = bio.bio.comm;
        rec.r.queue_cpu = bio.cpu;
    }
    // What is merged into a request whose first bio was not seen queued comes after its getrq.
    if (rec.r.queue_ns == kNoTime && (rec.r.getrq_ns == kNoTime || bio.bio.since_ns <= rec.r.getrq_ns))
        rec.r.queue_ns = bio.bio.since_ns;
    if (front) {
        rec.bios.insert(rec.bios.begin(), b);
        rec.r.bios.insert(rec.r.bios.begin(), bio.bio.id);
    } else {
        rec.bios.push_back(b);
        rec.r.bios.push_back(bio.bio.id);
    }
    if (hooks_) add_owner(rec, bio.bio.owner);
}

void Engine::detach(Index b) {
    BioRec &bio = bios_[b];
    if (bio.request == kNil) return;
    ReqRec &rec = requests_[bio.request];
    rec.bios.erase(std::remove(rec.bios.begin(), rec.bios.end(), b), rec.bios.end());
    rec.r.bios.erase(std::remove(rec.r.bios.begin(), rec.r.bios.end(), bio.bio.id), rec.r.bios.end());
    rec.bio_sectors -= bio.bio.nr_sectors;
    rec.r.owners.clear();
    for (Index other : rec.bios) add_owner(rec, bios_[other].bio.owner);
    bio.request = kNil;
    bio.bio.request = 0;
}

void Engine::set_pointer(Index i, std::uint64_t pointer) {
    ReqRec &rec = requests_[i];
    if (rec.r.pointer == pointer) return;
    if (pointers_ && rec.r.pointer)
        if (Index *known = by_rq_.find(rec.r.pointer); known && *known == i) by_rq_.erase(rec.r.pointer);
    rec.r.pointer = pointer;
    if (!pointers_) return;
    auto [known, made] = by_rq_.insert(pointer);
    const Index old = made ? kNil : *known;
    *known = i;
    if (old != kNil && old != i) reuse(old);
}

// Its pointer (or a bio's of it) came back: it is over, and how was not seen.
void Engine::reuse(Index i) {
    ReqRec &rec = requests_[i];
    if (rec.step != Step::kDataDone) {
        missed_completion(rec, rec.r.issue_ns != kNoTime   ? rec.r.issue_ns
                               : rec.r.getrq_ns != kNoTime ? rec.r.getrq_ns
                                                           : last_ns_);
        ++counts.pointer_reuse;
        rec.r.reused = true;
    }
    close_request(i);
}

void Engine::leave_device(ReqRec &rec) {
    if (!rec.in_device) return;
    rec.in_device = false;
    --rec.device->in_flight;
}

// No interval is negative: a step that comes before the one that it follows is another request's, and left out.
void Engine::check_intervals(ReqRec &rec) {
    auto ordered = [this](std::initializer_list<std::int64_t *> steps) {
        std::int64_t next_ns = kNoTime;
        for (auto it = std::rbegin(steps); it != std::rend(steps); ++it) {
            if (**it == kNoTime) continue;
            if (next_ns != kNoTime && **it > next_ns) {
                **it = kNoTime;
                ++counts.interval_violations;
            } else {
                next_ns = **it;
            }
        }
    };
    Request &r = rec.r;
    ordered({&r.queue_ns, &r.getrq_ns, &r.first_issue_ns, &r.issue_ns, &r.complete_ns, &r.end_ns});
    ordered({&r.getrq_ns, &r.insert_ns, &r.issue_ns, &r.complete_ns});
    for (Index b : rec.bios) {
        Bio &bio = bios_[b].bio;
        ordered({&bio.queue_ns, &bio.getrq_ns, &r.issue_ns});
        ordered({&bio.queue_ns, &bio.merge_ns, &r.issue_ns, &r.complete_ns});
    }
}

void Engine::close_request(Index i) {
    ReqRec &rec = requests_[i];
    counts.failed += rec.r.complete_ns != kNoTime && rec.r.error != 0;
    leave_chains(i);
    leave_device(rec);
    unlink<ReqRec, &ReqRec::age>(requests_, request_age_, i);
    if (rec.listed) {
        Device &d = *rec.device;
        forget(d.flush_waiters, i);
        forget(d.second_waiters, i);
        forget(d.flushes, i);
        forget(d.passthrough, i);
    }
    if (pointers_ && rec.r.pointer)
        if (Index *known = by_rq_.find(rec.r.pointer); known && *known == i) by_rq_.erase(rec.r.pointer);
    for (Index b : rec.bios) rec.r.ambiguous = rec.r.ambiguous || bios_[b].doubtful;
    if (!rec.bios.empty() && rec.r.first_issue_ns != kNoTime)
        counts.size_differs += rec.bio_sectors != rec.r.nr_sectors;
    if (rec.r.complete_ns != kNoTime && rec.r.end_ns == kNoTime) rec.r.end_ns = rec.r.complete_ns;
    if (hooks_) check_intervals(rec);
    rec.r.in_flight_known = !rec.device->misses_completions;
    if (hooks_ && hooks_->request_done) hooks_->request_done(rec.r);
    for (Index b : rec.bios) {
        if (bios_[b].bio.merged && !bios_[b].confirmed) ++unconfirmed_merges;
        close_bio(b);
    }
    requests_.give_back(i);
}

void Engine::finish() {
    find_overdue();
    while (request_age_.head != kNil) {
        const ReqRec &rec = requests_[request_age_.head];
        if (rec.r.complete_ns == kNoTime) ++counts.incomplete_at_end;
        close_request(request_age_.head);
    }
    devices_.for_each([this](std::uint32_t, const std::unique_ptr<Device> &d) {
        constexpr std::uint64_t kNearlyAll = 8;
        counts.presumed_lost += std::exchange(d->unsure, 0);
        if (d->uninserted * kNearlyAll <= d->inserted) counts.inserts_missing += d->inserts_missing;
    });
    while (remap_age_.head != kNil) drop_remap(remap_age_.head);
    while (bio_age_.head != kNil) close_bio(bio_age_.head);
    served_.clear();
}

Engine::Has Engine::has_bio(const Place &place, std::uint64_t issue_ordinal, std::uint64_t bio_ordinal) const {
    for (Index i = request_starts_.first(place); i != kNil; i = requests_[i].by_start.next) {
        const ReqRec &rec = requests_[i];
        if (rec.issue_ordinal != issue_ordinal) continue;
        if (rec.r.ambiguous) return Has::kAmbiguous;
        for (Index b : rec.bios)
            if (bios_[b].ordinal == bio_ordinal) return Has::kYes;
        return Has::kNo;
    }
    return Has::kNoRequest;
}

// A capture can lack a device's completions by nature: perf that records some processes sees those that interrupted
// them. Where many requests were overtaken by 16 times as many as 99 % of the completed ones, theirs never come.
void Engine::give_up_missing(std::size_t most) {
    auto old = [](const ReqRec &rec) {
        const Device &d = *rec.device;
        const std::uint64_t overtaken = d.completions - rec.dev_completions;
        if (!rec.in_device || overtaken <= kMostStuck) return false;
        std::uint64_t total = 0, longer = 0;
        for (auto n : d.passes) total += n;
        for (std::size_t power = d.passes.size(); power-- > 0;) {
            longer += d.passes[power];
            if (longer * 100 > total) return overtaken > std::uint64_t{16} << power;
        }
        return false;
    };
    FlatMap<Device *, std::size_t> olds;
    for (Index i = request_age_.head; i != kNil; i = requests_[i].age.next)
        if (old(requests_[i])) ++olds[requests_[i].device];
    bool any = false;
    olds.for_each([&](Device *d, std::size_t n) {
        counts.incomplete_devices += n > most && !d->misses_completions;
        d->misses_completions = d->misses_completions || n > most;
        any = any || d->misses_completions;
    });
    for (Index i = any ? request_age_.head : kNil, next = kNil; i != kNil; i = next) {
        next = requests_[i].age.next;
        if (!requests_[i].device->misses_completions || !old(requests_[i])) continue;
        ++counts.presumed_lost;
        if (requests_[i].r.issue_ns != kNoTime) missed(requests_[i].r.dev, requests_[i].r.issue_ns, last_ns_);
        close_request(i);
    }
}

// Open requests that so many later ones have overtaken are not waited for any longer.
void Engine::give_up_overtaken() {
    while (request_age_.head != kNil) {
        const ReqRec &rec = requests_[request_age_.head];
        if (rec.device->completions - rec.dev_completions <= kOvertaken) return;
        ++counts.presumed_lost;
        if (rec.r.issue_ns != kNoTime) missed(rec.r.dev, rec.r.issue_ns, last_ns_);
        close_request(request_age_.head);
    }
}

void Engine::pass(std::int64_t ts_ns, std::uint64_t ordinal) {
    now_ = ordinal;
    last_ns_ = ts_ns;
    if (first_ns_ == kNoTime) first_ns_ = ts_ns;
    if (!served_.empty()) expire();
    if (ordinal % 256 != 0) return;
    give_up_overtaken();
    if (const auto open = requests_.live(); open > kMostStuck && ordinal >= next_look_) {
        give_up_missing(kMostStuck);
        next_look_ = ordinal + open / 4;  // a look goes through all of them: some four an event
    }
}

Fate Engine::apply(const BlockEvent &e, std::uint64_t ordinal) {
    if (concludes_) said_ = {};
    pass(e.ts_ns, ordinal);
    if (e.cpu < last_on_cpu_.size()) before_ = std::exchange(last_on_cpu_[e.cpu], ordinal);
    switch (e.kind) {
    case BlockKind::kBioQueue: return queue(e);
    case BlockKind::kBioRemap: return remap(e);
    case BlockKind::kSplit: return split(e);
    case BlockKind::kGetRq: return getrq(e);
    case BlockKind::kBioBackmerge: return merge(e, false);
    case BlockKind::kBioFrontmerge: return merge(e, true);
    case BlockKind::kRqMerge: return rq_merge(e);
    case BlockKind::kRqInsert: return insert(e);
    case BlockKind::kRqIssue: return issue(e);
    case BlockKind::kRqRequeue: return requeue(e);
    case BlockKind::kRqComplete: return complete(e);
    case BlockKind::kBioComplete: return bio_complete(e);
    case BlockKind::kRqBio: return rq_bio(e);
    case BlockKind::kRqRemap: return rq_remap(e);
    case BlockKind::kPlug:
    case BlockKind::kUnplug:
    case BlockKind::kRqError:  // comes after the completion, which has the error already (blk_update_request())
    case BlockKind::kBioBounce: return Fate::kContext;
    case BlockKind::kOther: break;
    }
    return Fate::kIgnored;
}

}  // namespace opline::block_model
