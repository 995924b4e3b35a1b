// SPDX-License-Identifier: MIT
// How a block event goes through the parts of a matcher: steps of requests that carry data.
#include "block/engine.hpp"

#include <utility>

namespace opline::block_model {
namespace {

constexpr std::size_t kFlushBioLimit = std::size_t{1} << 12;

bool is_flush_op(const BlockEvent &e) { return (e.rwbs & rwbs::kFlush) != 0 && e.nr_sectors == 0; }

}  // namespace

void Engine::finish() {
    decide_completions(true);
    lost_.find_overdue();
    while (requests_.oldest() != kNil) {
        if (requests_[requests_.oldest()].r.complete_ns == kNoTime) ++m_.counts.incomplete_at_end;
        requests_.close(requests_.oldest());
    }
    m_.devices.each([this](Device &d) {
        m_.counts.presumed_lost += std::exchange(d.unsure, 0);
        m_.counts.queues_assumed += d.flush_issues != 0 && d.queues.are_assumed();
    });
    bios_.finish();
}

void Engine::pass(std::int64_t ts_ns, std::uint64_t ordinal) {
    m_.now = ordinal;
    m_.last_ns = ts_ns;
    if (m_.first_ns == kNoTime) m_.first_ns = ts_ns;
    bios_.expire();
    if (ordinal % 256 == 0) lost_.look();
}

Fate Engine::apply(const BlockEvent &e, std::uint64_t ordinal) {
    if (m_.concludes) m_.said = {};
    pass(e.ts_ns, ordinal);
    flushes_.runs().saw(e.cpu, ordinal);
    if (undecided_.any() && undecided_.passed(e)) decide_completions(false);
    return step(e);
}

Fate Engine::step(const BlockEvent &e) {
    switch (e.kind) {
    case BlockKind::kBioQueue: return queue(e);
    case BlockKind::kBioRemap: return bios_.remap(e);
    case BlockKind::kSplit: return bios_.split(e);
    case BlockKind::kGetRq: return getrq(e);
    case BlockKind::kBioBackmerge: return merges_.merge(e, false);
    case BlockKind::kBioFrontmerge: return merges_.merge(e, true);
    case BlockKind::kRqMerge: return merges_.rq_merge(e);
    case BlockKind::kRqInsert: return insert(e);
    case BlockKind::kRqIssue: return issue(e);
    case BlockKind::kRqRequeue: return requeue(e);
    case BlockKind::kRqComplete: return complete(e);
    case BlockKind::kBioComplete: return bios_.complete(e);
    case BlockKind::kRqBio: return merges_.rq_bio(e);
    case BlockKind::kRqRemap: return rq_remap(e);
    case BlockKind::kPlug:
    case BlockKind::kUnplug:
    // comes after the completion, and the completion has the error already (blk_update_request())
    case BlockKind::kRqError:
    case BlockKind::kBioBounce: return Fate::kContext;
    case BlockKind::kOther: break;
    }
    return Fate::kIgnored;
}

Fate Engine::queue(const BlockEvent &e) {
    m_.devices.of(e.dev).has_queue = true;
    if (const Index known = bios_.queued_remainder(e); known != kNil) {
        bios_[known].bio.queue_ns = bios_[known].bio.since_ns = e.ts_ns;
        return bios_[known].bio.owner ? Fate::kRequestStep : Fate::kBackground;
    }
    if (const std::uint64_t pointer = m_.bio_of(e)) {
        // The pointer comes back: the old bio or request is over, and its end event is missing.
        if (Index *old = bios_.by_pointer(pointer)) {
            const Index i = *old;
            if (bios_[i].request != kNil) {
                requests_.reuse(bios_[i].request);
            } else if (!bios_[i].mapped) {
                evidence_.missed(bios_[i].bio.dev, bios_[i].bio.queue_ns != kNoTime ? bios_[i].bio.queue_ns : e.ts_ns,
                                 e.ts_ns);
                ++m_.counts.lost_bios;
                bios_.close(i);
            } else {
                bios_.forget_pointer(pointer);
            }
        }
    }
    if ((e.rwbs & rwbs::kPreflush) != 0 && e.nr_sectors == 0) flushes_.losses().check_flush_before(e);
    const Index bio = bios_.queued(e);
    if (e.rwbs & rwbs::kPreflush)
        if (Device &d = m_.devices.of(e.dev); d.flush_bios.size() < kFlushBioLimit)
            d.flush_bios.push_back({bio, bios_[bio].bio.id, e.ts_ns});
    return bios_[bio].bio.owner ? Fate::kRequestStep : Fate::kBackground;
}

Fate Engine::getrq(const BlockEvent &e) {
    const Found bio = bios_.for_request(e);
    const Index i = requests_.make(e, e.sector, e.nr_sectors);
    ReqRec &rec = requests_[i];
    rec.r.getrq_ns = e.ts_ns;
    Device &d = m_.devices.of(e.dev);
    if (!d.has_getrq) d.flush_bios.clear();
    d.has_getrq = true;
    if (bio && !d.flush_bios.empty())
        d.flush_bios.erase(std::remove_if(d.flush_bios.begin(), d.flush_bios.end(),
                                          [&](const Waiting &w) { return w.bio == bio.index; }),
                           d.flush_bios.end());
    rec.r.ambiguous = bio.ambiguous;
    if (e.rq) requests_.set_pointer(i, e.rq);
    flushes_.line().note_flush_entry(i, e.rwbs);
    requests_.places().enter(i);
    m_.says(Conclusion::Hop::kBio, bio ? bios_[bio.index].ordinal : 0, bio.by_pointer, bio.ambiguous);
    if (!bio) {
        ++m_.counts.unmatched_getrq;
        if (m_.devices.of(e.dev).has_queue) evidence_.came_from_nowhere(e);
        rec.r.queue_tid = e.tid;  // the thread that queues a bio also allocates the request
        rec.r.queue_comm = e.comm;
        rec.r.queue_cpu = e.cpu;
        return Fate::kOrphanRequest;
    }
    bios_.set_pointer(bio.index, e.bio);  // new for a split's clone
    BioRec &first = bios_[bio.index];
    first.bio.getrq_ns = first.first_getrq_ns = e.ts_ns;
    first.first_request = rec.r.id;
    if (const BioRec *front = first.family != kNil ? &bios_[first.family] : nullptr;
        front && front->first_request != 0) {
        rec.r.first_getrq_ns = first.first_getrq_ns = front->first_getrq_ns;
        rec.r.first_request = first.first_request = front->first_request;
    }
    requests_.attach(bio.index, i, false, bio.by_pointer);
    return requests_.fate_of(requests_[i]);
}

Fate Engine::insert(const BlockEvent &e) {
    if (is_flush_op(e)) return Fate::kContext;  // a flush before its issue; the issue begins the flush
    const Found found = finder_.request_for(e, BlockKind::kRqInsert);
    Index i = found.index;
    bool known = found.index != kNil;
    if (!known) {
        i = issue_of_bios(e);
        evidence_.check_allocated(e, requests_[i]);
        known = !requests_[i].bios.empty();
    }
    ReqRec &rec = requests_[i];
    if (known) finder_.note_insert(e, rec);
    if (rec.r.insert_ns == kNoTime) rec.r.insert_ns = e.ts_ns;
    rec.step = Step::kInserted;
    if (e.nr_sectors > 0) requests_.places().rekey(i, e.sector, e.nr_sectors);
    if (!known) {
        ++m_.counts.unmatched_insert;
        return Fate::kOrphanRequest;
    }
    return requests_.fate_of(requests_[i]);
}

// A completion without an issue: in a trace without getrq events the bios still wait.
Index Engine::completed_unissued(const BlockEvent &e) {
    const Device &d = m_.devices.of(e.dev);
    if (d.has_getrq || !d.has_issue || m_.rq_of(e)) return kNil;
    BlockEvent any = e;
    any.tid = -1;
    const Found first = bios_.open_at(any, 0, false);
    if (!first || bios_[first.index].bio.nr_sectors == 0 || bios_[first.index].bio.nr_sectors > e.nr_sectors)
        return kNil;
    evidence_.missed(e.dev, bios_[first.index].bio.queue_ns != kNoTime ? bios_[first.index].bio.queue_ns : e.ts_ns,
                     e.ts_ns);
    return issue_of_bios(e);
}

// A request without getrq and insert events, made of the waiting bios at its place, one after the other.
Index Engine::issue_of_bios(const BlockEvent &e) {
    const Index i = requests_.make(e, e.sector, e.nr_sectors);
    if (e.rq) requests_.set_pointer(i, e.rq);
    BlockEvent part = e;
    part.tid = -1;  // the issuing thread does not identify the queueing thread
    std::uint32_t left = e.nr_sectors;
    while (left > 0) {
        part.nr_sectors = left;
        Found bio = bios_.for_request(part);  // of the same length, or cut
        if (!bio) {
            bio = bios_.open_at(part, 0, false);  // shorter: merges were not seen
            if (!bio || bios_[bio.index].bio.nr_sectors == 0) {
                const std::uint64_t next = bios_.next_behind(part);  // a bio without a Q lies between
                if (next == kNoSector) break;
                left -= static_cast<std::uint32_t>(next - part.sector);
                part.sector = next;
                continue;
            }
        }
        ReqRec &rec = requests_[i];
        const Bio &b = bios_[bio.index].bio;
        if (rec.bios.empty()) {
            rec.r.rwbs = b.rwbs;
            rec.r.kind = BlockModel::kind_of(b.rwbs, e.nr_sectors);
            flushes_.line().note_flush_entry(i, b.rwbs);
            m_.says(Conclusion::Hop::kIssue, bios_[bio.index].ordinal, bio.by_pointer, bio.ambiguous);
        } else {
            bios_[bio.index].bio.merged = true;
            ++rec.r.merges;
        }
        rec.r.ambiguous = rec.r.ambiguous || bio.ambiguous;
        left -= b.nr_sectors;
        part.sector += b.nr_sectors;
        part.bio = 0;
        requests_.attach(bio.index, i, false, bio.by_pointer);
    }
    requests_.places().enter(i);
    return i;
}

Fate Engine::issue(const BlockEvent &e) {
    ++m_.counts.issues;
    if (is_flush_op(e)) return flushes_.issue_flush(e);
    const Found found = finder_.request_for(e, BlockKind::kRqIssue);
    Index i = found.index;
    bool known = found.index != kNil;
    if (known) {
        const ReqRec &rec = requests_[i];
        finder_.note_issue(e, rec);
        m_.says(Conclusion::Hop::kIssue, rec.ordinal, found.by_pointer, rec.r.ambiguous);
    } else if (const Index again = reissues_.issued_again(e); again != kNil) {
        reissues_.note_reissue(e, again);
        i = again;
        known = true;
    } else {
        m_.says(Conclusion::Hop::kIssue, 0, false, false);
        i = issue_of_bios(e);
        evidence_.check_allocated(e, requests_[i]);
        known = !requests_[i].bios.empty();
    }
    requests_.begin_issue(e, i);
    reissues_.note_issue(e, i);
    if (const Index *first = found.by_pointer && m_.bio_of(e) ? bios_.by_pointer(e.bio) : nullptr)
        if (bios_[*first].bio.merged && bios_[*first].bio.sector == e.sector) merges_.confirm_bio(*first, i);
    if (!known && e.nr_sectors == 0 && (e.rwbs & rwbs::kPreflush) == 0) return flushes_.passthrough().begin(i);
    if (!known) {
        ++m_.counts.unmatched_issue;
        return Fate::kOrphanRequest;
    }
    return requests_.fate_of(requests_[i]);
}

Fate Engine::requeue(const BlockEvent &e) {
    ++m_.counts.requeues;
    Found found;
    if (is_flush_op(e)) found = flushes_.flush_to_complete(e);
    else found = finder_.request_for(e, BlockKind::kRqRequeue);
    if (!found) {
        ++m_.counts.unmatched_requeue;
        return Fate::kOrphanRequest;
    }
    ReqRec &rec = requests_[found.index];
    ++rec.r.requeues;
    rec.step = Step::kRequeued;
    rec.dev_completions = rec.device->completions;
    requests_.leave_device(rec);
    return requests_.fate_of(requests_[found.index]);
}

Fate Engine::complete(const BlockEvent &e) {
    ++m_.counts.completions;
    if (e.nr_sectors == 0) return flushes_.complete_empty(e);
    if (e.sector == kNoSector) return flushes_.complete_passthrough(e);
    Found found = finder_.request_for(e, BlockKind::kRqComplete);
    if (!found && !m_.rq_of(e)) found.index = reissues_.second_of_reissue(e);
    if (!found) found.index = completed_unissued(e);
    if (!found) {
        m_.says(Conclusion::Hop::kComplete, 0, false, false);
        ++m_.counts.unmatched_complete;
        if (m_.devices.of(e.dev).has_issue) evidence_.came_from_nowhere(e);
        return Fate::kOrphanRequest;
    }
    const Index i = found.index;
    ReqRec &rec = requests_[i];
    if (found.ambiguous) {
        finder_.fit_as_well(e, i, equals_);
        const bool held = equals_.size() > 1 && undecided_.hold(e, equals_);
        if (!held || found.tainted)
            for (Index equal : equals_) requests_.doubt(equal);
        if (held) {
            m_.says(Conclusion::Hop::kComplete, rec.issue_ordinal, false, true);
            return requests_.fate_of(rec);
        }
    }
    evidence_.check_issued(e, rec);
    m_.says(Conclusion::Hop::kComplete, rec.issue_ordinal ? rec.issue_ordinal : rec.ordinal, found.by_pointer,
            rec.r.ambiguous);
    if (e.error != 0) rec.r.error = e.error;
    if (!rec.r.ambiguous && rec.step == Step::kIssued)
        m_.devices.of(e.dev).queues.note_completion(rec.r.issue_cpu, e.cpu);
    if (e.nr_sectors < rec.remaining) {
        ++m_.counts.partial_completions;
        requests_.places().rekey(i, rec.start + e.nr_sectors, rec.remaining - e.nr_sectors);
        return requests_.fate_of(requests_[i]);
    }
    return completed_whole(e, i);
}

void Engine::woken(std::int32_t tid, std::uint32_t cpu, std::int64_t ts_ns) {
    if (Undecided::Decision d; undecided_.woken(tid, cpu, ts_ns, d)) give(d);
}

void Engine::decide(std::int64_t begin_ns, std::int64_t end_ns, std::int64_t now_ns) {
    if (!undecided_.is_inside(begin_ns, end_ns)) return;
    m_.last_ns = std::max(m_.last_ns, now_ns);
    decide_completions(false);
}

void Engine::decide_completions(bool at_end) {
    for (Undecided::Decision d; undecided_.next(d, at_end);) give(d);
}

void Engine::give(const Undecided::Decision &d) {
    if (d.request == kNil) {
        ++m_.counts.unmatched_complete;
        return;
    }
    using Shown = Undecided::Shown;
    for (const Index i : d.unsure) requests_.doubt(i);
    if (d.shown == Shown::kByOrder || d.shown == Shown::kByWake)
        requests_[d.request].r.completion_by = d.is_only ? CompletionBy::kTwo : CompletionBy::kOrder;
    evidence_.check_issued(d.event, requests_[d.request]);
    completed_whole(d.event, d.request);
}

Fate Engine::completed_whole(const BlockEvent &e, Index i) {
    ReqRec &rec = requests_[i];
    requests_.places().leave(i);
    requests_.completed(e, i);
    if (rec.twice) {
        rec.step = Step::kDataDone;
        flushes_.line().wait_for_second_completion(e, i);
        return requests_.fate_of(requests_[i]);
    }
    rec.r.end_ns = e.ts_ns;
    const Fate fate = requests_.fate_of(requests_[i]);
    requests_.close(i);
    return fate;
}

// Request-based dm (multipath): the clone for the lower device has neither Q nor G; its owners are the upper request's
// owners.
Fate Engine::rq_remap(const BlockEvent &e) {
    BlockEvent upper = e;
    upper.dev = e.old_dev;
    upper.sector = e.old_sector;
    upper.rq = 0;
    upper.cpu = kNoCpu;
    const Found found = finder_.request_at(upper, BlockKind::kRqComplete);
    if (!found) return Fate::kOrphanRequest;
    const Index i = requests_.make(e, e.sector, e.nr_sectors);
    if (e.rq) requests_.set_pointer(i, e.rq);
    const Request &from = requests_[found.index].r;
    Request &r = requests_[i].r;
    r.queue_ns = from.queue_ns;
    r.queue_tid = from.queue_tid;
    r.queue_comm = from.queue_comm;
    r.cgroup = from.cgroup;
    r.queue_cpu = from.queue_cpu;
    r.ambiguous = from.ambiguous;
    r.bios = from.bios;
    r.owners = from.owners;
    requests_.places().enter(i);
    return requests_.fate_of(requests_[i]);
}

void Engine::know(std::uint32_t dev, const DeviceFacts &facts) {
    Device &d = m_.devices.of(dev);
    d.fua = facts.fua;
    for (std::uint32_t queue = 0; queue < facts.queues.size(); ++queue)
        for (const std::uint32_t cpu : facts.queues[queue]) d.queues.tell(cpu, queue);
}

}  // namespace opline::block_model
