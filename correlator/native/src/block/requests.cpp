// SPDX-License-Identifier: MIT
#include "block/requests.hpp"

#include <algorithm>
#include <array>

#include "block/steps.hpp"

namespace opline::block_model {

// The request has a new begin or length, or cannot grow any more. The turn at its place stays while the place stays.
void RequestPlaces::rekey(Index i, std::uint64_t start, std::uint32_t remaining) {
    ReqRec &rec = requests_[i];
    const bool grows = rec.step == Step::kAllocated || rec.step == Step::kInserted;
    if (rec.at_start && start != rec.start) {
        starts_.remove(requests_, {rec.r.dev, rec.start}, i);
        rec.at_start = false;
    }
    if (!grows || start + remaining != rec.start + rec.remaining) leave_end(i);
    rec.start = start;
    rec.remaining = remaining;
    enter(i);
}

void RequestPlaces::enter(Index i) {
    ReqRec &rec = requests_[i];
    if (rec.is_flush || rec.remaining == 0) return;
    if (!rec.at_start) starts_.add(requests_, {rec.r.dev, rec.start}, i);
    rec.at_start = true;
    if (rec.step != Step::kAllocated && rec.step != Step::kInserted) return;
    if (rec.at_end) return;
    rec.at_end = true;
    rec.end_order = ++end_orders_;
    if (has_merges_) ends_.add(requests_, {rec.r.dev, rec.start + rec.remaining}, i);
}

void RequestPlaces::leave_end(Index i) {
    ReqRec &rec = requests_[i];
    if (!rec.at_end) return;
    rec.at_end = false;
    if (has_merges_) ends_.remove(requests_, {rec.r.dev, rec.start + rec.remaining}, i);
}

// Only merges look up ends: no ends are kept before the first merge.
void RequestPlaces::keep_ends() {
    if (has_merges_) return;
    has_merges_ = true;
    std::vector<Index> growing;
    for (Index i = age_.head; i != kNil; i = requests_[i].age.next)
        if (requests_[i].at_end) growing.push_back(i);
    std::sort(growing.begin(), growing.end(),
              [this](Index a, Index b) { return requests_[a].end_order < requests_[b].end_order; });
    for (Index i : growing) ends_.add(requests_, {requests_[i].r.dev, requests_[i].start + requests_[i].remaining}, i);
}

void RequestPlaces::leave(Index i) {
    ReqRec &rec = requests_[i];
    if (rec.at_start) starts_.remove(requests_, {rec.r.dev, rec.start}, i);
    rec.at_start = false;
    leave_end(i);
}

void Requests::begin_issue(const BlockEvent &e, Index i) {
    ReqRec &rec = requests_[i];
    rec.step = Step::kIssued;
    rec.issue_ordinal = m_.now;
    if (!rec.is_flush) {
        if (rec.r.first_issue_ns == kNoTime) {
            rec.r.sector = e.sector;
            rec.r.nr_sectors = e.nr_sectors;
        }
        places_.rekey(i, e.sector, e.nr_sectors);
        // The flush machinery removes PREFLUSH from every such write, and FUA if the device has no FUA: these writes
        // complete twice.
        const std::uint32_t lost = rec.entry_flags & ~e.rwbs;
        rec.twice = e.nr_sectors > 0 && (lost & (rwbs::kFua | rwbs::kPreflush)) != 0;
        rec.needs_flush = (lost & rwbs::kFua) != 0;
        if (rec.waits_flush) {
            forget(m_.devices.of(e.dev).flush_waiters, i);
            rec.waits_flush = false;
        }
    }
    rec.r.issue_ns = e.ts_ns;
    rec.r.issue_tid = e.tid;
    rec.r.issue_comm = e.comm;
    rec.r.issue_cpu = e.cpu;
    Device &d = m_.devices.of(e.dev);
    d.has_issue = true;
    if (e.queue != kNoQueue && (e.rwbs & rwbs::kRead) == 0) d.queues.tell(e.cpu, e.queue);
    if (rec.r.first_issue_ns == kNoTime) {
        evidence_.took(d, rec.r.getrq_ns, e.ts_ns);
        rec.r.first_issue_ns = e.ts_ns;
        rec.r.in_flight = d.in_flight - d.undecided;
    }
    rec.dev_completions = d.completions;
    if (!rec.in_device) d.most_in_flight = std::max(d.most_in_flight, ++d.in_flight - d.undecided);
    rec.in_device = true;
}

Index Requests::make(const BlockEvent &e, std::uint64_t sector, std::uint32_t nr_sectors) {
    const Index i = requests_.take();
    ReqRec &rec = requests_[i];
    rec.ordinal = m_.now;
    rec.device = &m_.devices.of(e.dev);
    rec.dev_completions = rec.device->completions;
    rec.start = sector;
    rec.remaining = nr_sectors;
    rec.op = e.rwbs & kDirection;
    Request &r = rec.r;
    r.id = ++m_.shared.request;
    r.dev = e.dev;
    r.sector = nr_sectors > 0 ? sector : kNoSector;
    r.nr_sectors = nr_sectors;
    r.rwbs = e.rwbs;
    r.kind = BlockModel::kind_of(e.rwbs, nr_sectors);
    append<ReqRec, &ReqRec::age>(requests_, age_, i);
    if (requests_.live() > kOpenLimit && age_.head != i) {
        ++m_.counts.evicted;
        close(age_.head);
    }
    return i;
}

void Requests::add_owner(ReqRec &rec, const Owner &owner) {
    if (!owner) return;
    for (auto it = rec.r.owners.rbegin(); it != rec.r.owners.rend(); ++it)
        if (it->op == owner.op && it->batch == owner.batch) return;
    rec.r.owners.push_back(owner);
}

// Adds the bio to the request: as the first (front) or last bio.
void Requests::attach(Index b, Index i, bool front, bool by_pointer) {
    BioRec &bio = bios_[b];
    ReqRec &rec = requests_[i];
    bios_.leave_place(b);
    bio.request = i;
    bio.bio.request = rec.r.id;
    bio.confirmed = by_pointer;
    rec.bio_sectors += bio.bio.nr_sectors;
    rec.r.ambiguous = rec.r.ambiguous || bio.ambiguous;
    if (rec.bios.empty()) {  // the bio of the allocation, perhaps not the first in sectors
        rec.r.queue_tid = bio.bio.tid;
        rec.r.queue_comm = bio.bio.comm;
        rec.r.cgroup = bio.bio.cgroup;
        rec.r.queue_cpu = bio.cpu;
    }
    // If the first bio has no Q, a merged bio's Q may come after the getrq.
    if (rec.r.queue_ns == kNoTime && (rec.r.getrq_ns == kNoTime || bio.bio.since_ns <= rec.r.getrq_ns))
        rec.r.queue_ns = bio.bio.since_ns;
    if (front) {
        rec.bios.insert(rec.bios.begin(), b);
        rec.r.bios.insert(rec.r.bios.begin(), bio.bio.id);
    } else {
        rec.bios.push_back(b);
        rec.r.bios.push_back(bio.bio.id);
    }
    if (m_.hooks) add_owner(rec, bio.bio.owner);
}

void Requests::detach(Index b) {
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

void Requests::set_pointer(Index i, std::uint64_t pointer) {
    ReqRec &rec = requests_[i];
    if (rec.r.pointer == pointer) return;
    if (m_.pointers && rec.r.pointer)
        if (Index *known = by_rq_.find(rec.r.pointer); known && *known == i) by_rq_.erase(rec.r.pointer);
    rec.r.pointer = pointer;
    if (!m_.pointers) return;
    auto [known, made] = by_rq_.insert(pointer);
    const Index old = made ? kNil : *known;
    *known = i;
    if (old != kNil && old != i) reuse(old);
}

// The request's pointer (or a bio's pointer) came back: the request is over, and its completion is missing.
void Requests::reuse(Index i) {
    ReqRec &rec = requests_[i];
    if (rec.step != Step::kDataDone) {
        evidence_.missed_completion(rec, rec.r.issue_ns != kNoTime   ? rec.r.issue_ns
                                         : rec.r.getrq_ns != kNoTime ? rec.r.getrq_ns
                                                                     : m_.last_ns);
        ++m_.counts.pointer_reuse;
        rec.r.reused = true;
    }
    close(i);
}

void Requests::leave_device(ReqRec &rec) {
    if (!rec.in_device) return;
    rec.in_device = false;
    --rec.device->in_flight;
}

// No interval is negative: a step before its preceding step belongs to another request, and is left out.
void Requests::check_intervals(ReqRec &rec) {
    auto ordered = [this](auto first, auto past) {
        std::int64_t next_ns = kNoTime;
        while (past != first) {
            std::int64_t &at_ns = **--past;
            if (at_ns == kNoTime) continue;
            if (next_ns != kNoTime && at_ns > next_ns) {
                at_ns = kNoTime;
                ++m_.counts.interval_violations;
            } else {
                next_ns = at_ns;
            }
        }
    };
    auto all = [&ordered](std::initializer_list<std::int64_t *> steps) { ordered(steps.begin(), steps.end()); };
    Request &r = rec.r;
    all({&r.queue_ns, &r.getrq_ns, &r.first_issue_ns, &r.issue_ns, &r.complete_ns, &r.end_ns});
    std::array<std::int64_t *, kRequestSteps.size()> steps{};
    std::transform(kRequestSteps.begin(), kRequestSteps.end(), steps.begin(),
                   [&r](const RequestStep &step) { return &(r.*step.of_request); });
    ordered(steps.begin(), steps.end());
    for (Index b : rec.bios) {
        Bio &bio = bios_[b].bio;
        all({&bio.queue_ns, &bio.getrq_ns, &r.issue_ns});
        all({&bio.queue_ns, &bio.merge_ns, &r.issue_ns, &r.complete_ns});
    }
}

void Requests::close(Index i) {
    ReqRec &rec = requests_[i];
    m_.counts.failed += rec.r.complete_ns != kNoTime && rec.r.error != 0;
    places_.leave(i);
    leave_device(rec);
    unlink<ReqRec, &ReqRec::age>(requests_, age_, i);
    if (rec.listed) {
        Device &d = *rec.device;
        forget(d.flush_waiters, i);
        forget(d.second_waiters, i);
        forget(d.flushes, i);
        forget(d.passthrough, i);
    }
    if (m_.pointers && rec.r.pointer)
        if (Index *known = by_rq_.find(rec.r.pointer); known && *known == i) by_rq_.erase(rec.r.pointer);
    for (Index b : rec.bios) rec.r.ambiguous = rec.r.ambiguous || bios_[b].doubtful;
    if (!rec.bios.empty() && rec.r.first_issue_ns != kNoTime)
        m_.counts.size_differs += rec.bio_sectors != rec.r.nr_sectors;
    if (rec.r.complete_ns != kNoTime && rec.r.end_ns == kNoTime) rec.r.end_ns = rec.r.complete_ns;
    if (m_.hooks) check_intervals(rec);
    rec.r.in_flight_known = !rec.device->misses_completions;
    if (m_.hooks && m_.hooks->request_done) m_.hooks->request_done(rec.r);
    for (Index b : rec.bios) {
        if (bios_[b].bio.merged && !bios_[b].confirmed) ++unconfirmed_merges_;
        bios_.close(b);
    }
    requests_.give_back(i);
}

Requests::Has Requests::has_bio(const Place &place, std::uint64_t issue_ordinal, std::uint64_t bio_ordinal) const {
    for (Index i = places_.first(place); i != kNil; i = requests_[i].by_start.next) {
        const ReqRec &rec = requests_[i];
        if (rec.issue_ordinal != issue_ordinal) continue;
        if (rec.r.ambiguous) return Has::kAmbiguous;
        for (Index b : rec.bios)
            if (bios_[b].ordinal == bio_ordinal) return Has::kYes;
        return Has::kNo;
    }
    return Has::kNoRequest;
}

void Requests::doubt(Index i) {
    ReqRec &rec = requests_[i];
    rec.r.ambiguous = true;
    if (rec.in_device) rec.dev_completions = rec.device->completions;
}

// Effect of C on every request: the device time ends.
void Requests::completed(const BlockEvent &e, Index i) {
    ReqRec &rec = requests_[i];
    evidence_.took(*rec.device, rec.r.issue_ns, e.ts_ns);
    rec.r.complete_ns = e.ts_ns;
    rec.r.complete_cpu = e.cpu;
    if (rec.in_device && !rec.r.ambiguous)
        rec.device->order.note_overtaken(rec.device->completions - rec.dev_completions);
    if (e.error != 0) rec.r.error = e.error;
    ++rec.device->completions;
    leave_device(rec);
}

}  // namespace opline::block_model
