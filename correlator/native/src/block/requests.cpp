// SPDX-License-Identifier: MIT
// Steps of requests that carry data: G, merges, I, D, R, C. Flushes: block/flush.cpp.
#include <algorithm>

#include "block/engine.hpp"

namespace opline::block_model {

namespace {
bool is_flush_op(const BlockEvent &e) { return (e.rwbs & rwbs::kFlush) != 0 && e.nr_sectors == 0; }
}  // namespace

Fate Engine::getrq(const BlockEvent &e) {
    const Found bio = bio_for_request(e);
    const Index i = new_request(e, e.sector, e.nr_sectors);
    ReqRec &rec = requests_[i];
    rec.r.getrq_ns = e.ts_ns;
    Device &d = device(e.dev);
    if (!d.has_getrq) d.flush_bios.clear();
    d.has_getrq = true;
    if (bio && !d.flush_bios.empty())
        d.flush_bios.erase(std::remove_if(d.flush_bios.begin(), d.flush_bios.end(),
                                          [&](const Waiting &w) { return w.bio == bio.index; }),
                           d.flush_bios.end());
    rec.r.ambiguous = bio.ambiguous;
    if (e.rq) set_pointer(i, e.rq);
    note_flush_entry(i, e.rwbs);
    enter_chains(i);
    says(Conclusion::Hop::kBio, bio ? bios_[bio.index].ordinal : 0, bio.by_pointer, bio.ambiguous);
    if (!bio) {
        ++counts.unmatched_getrq;
        if (device(e.dev).has_queue) came_from_nowhere(e);
        rec.r.queue_tid = e.tid;  // the thread that queues a bio also allocates for it
        rec.r.queue_comm = e.comm;
        rec.r.queue_cpu = e.cpu;
        return Fate::kOrphanRequest;
    }
    set_bio_pointer(bio.index, e.bio);  // of a split's clone it is new
    BioRec &first = bios_[bio.index];
    first.bio.getrq_ns = first.first_getrq_ns = e.ts_ns;
    first.first_request = rec.r.id;
    if (const BioRec *front = first.family != kNil ? &bios_[first.family] : nullptr;
        front && front->first_request != 0) {
        rec.r.first_getrq_ns = first.first_getrq_ns = front->first_getrq_ns;
        rec.r.first_request = first.first_request = front->first_request;
    }
    attach(bio.index, i, false, bio.by_pointer);
    return stepped(e, i);
}

Fate Engine::merge(const BlockEvent &e, bool front) {
    ++(front ? counts.front_merges : counts.back_merges);
    const Found bio = bio_for_request(e);
    const Found target = merge_target(e, front);
    if (bio) {
        bios_[bio.index].bio.merged = true;
        bios_[bio.index].bio.merge_ns = e.ts_ns;
        set_bio_pointer(bio.index, e.bio);
    }
    if (target.ambiguous && bio && has_rq_bio_) bios_[bio.index].doubtful = true;
    if (!bio || !target) {
        ++counts.unmatched_merge;
        if (device(e.dev).has_queue) came_from_nowhere(e);
        if (bio) close_bio(bio.index);
    }
    if (!target) return Fate::kOrphanRequest;
    ReqRec &rec = requests_[target.index];
    rekey(target.index, front ? e.sector : rec.start, rec.remaining + e.nr_sectors);
    rec.r.sector = rec.start;
    rec.r.nr_sectors = rec.remaining;
    ++rec.r.merges;
    rec.r.ambiguous = rec.r.ambiguous || bio.ambiguous;
    if (!bio) return Fate::kOrphanRequest;
    attach(bio.index, target.index, front, false);
    return stepped(e, target.index);
}

// The event's request is absorbed by the one that ends where it begins.
Fate Engine::rq_merge(const BlockEvent &e) {
    ++counts.rq_merges;
    const Found next = request_for(e, BlockKind::kRqMerge);
    if (!next) {
        ++counts.unmatched_merge;
        return Fate::kOrphanRequest;
    }
    leave_chains(next.index);  // it is no candidate for itself
    const Found into = merge_target(e, false);
    if (!into) {
        ++counts.unmatched_merge;
        close_request(next.index);
        return Fate::kOrphanRequest;
    }
    ReqRec &to = requests_[into.index], &from = requests_[next.index];
    rekey(into.index, to.start, to.remaining + from.remaining);
    to.r.nr_sectors = to.remaining;
    to.r.merges += from.r.merges + 1;
    to.r.ambiguous = to.r.ambiguous || into.ambiguous || next.ambiguous || from.r.ambiguous;
    for (Index b : from.bios) {
        bios_[b].bio.merged = true;
        attach(b, into.index, false, bios_[b].confirmed);
    }
    from.bios.clear();
    from.r.bios.clear();
    from.r.owners.clear();
    from.r.absorbed_by = to.r.id;
    close_request(next.index);
    return stepped(e, into.index);
}

Fate Engine::insert(const BlockEvent &e) {
    if (is_flush_op(e)) return Fate::kContext;  // a flush's way to its issue, which begins it
    const Found found = request_for(e, BlockKind::kRqInsert);
    Index i = found.index;
    bool known = found.index != kNil;
    if (!known) {
        i = issue_of_bios(e);
        check_allocated(e, i);
        known = !requests_[i].bios.empty();
    }
    ReqRec &rec = requests_[i];
    if (known && rec.step == Step::kAllocated && rec.r.queue_tid == e.tid && !rec.r.ambiguous)
        inserts_.note(e.tid, rec.ordinal, now_);
    if (rec.r.insert_ns == kNoTime) rec.r.insert_ns = e.ts_ns;
    rec.step = Step::kInserted;
    if (e.nr_sectors > 0) rekey(i, e.sector, e.nr_sectors);
    if (!known) {
        ++counts.unmatched_insert;
        return Fate::kOrphanRequest;
    }
    return stepped(e, i);
}

// The issue of what completes is missing, and where there are no getrq events its bios still wait.
Index Engine::completed_unissued(const BlockEvent &e) {
    const Device &d = device(e.dev);
    if (d.has_getrq || !d.has_issue || rq_of(e)) return kNil;
    BlockEvent any = e;
    any.tid = -1;
    const Found first = open_bio(any, 0, false);
    if (!first || bios_[first.index].bio.nr_sectors == 0 || bios_[first.index].bio.nr_sectors > e.nr_sectors)
        return kNil;
    missed(e.dev, bios_[first.index].bio.queue_ns != kNoTime ? bios_[first.index].bio.queue_ns : e.ts_ns, e.ts_ns);
    return issue_of_bios(e);
}

// A request whose getrq was not seen (nor an insert), of the bios that wait in its place, one behind the other.
Index Engine::issue_of_bios(const BlockEvent &e) {
    const Index i = new_request(e, e.sector, e.nr_sectors);
    if (e.rq) set_pointer(i, e.rq);
    BlockEvent part = e;
    part.tid = -1;  // the issuing thread says nothing of who queued
    std::uint32_t left = e.nr_sectors;
    while (left > 0) {
        part.nr_sectors = left;
        Found bio = bio_for_request(part);  // of that length, or cut to it
        if (!bio) {
            bio = open_bio(part, 0, false);  // shorter: merges were not seen
            if (!bio || bios_[bio.index].bio.nr_sectors == 0) {
                const std::uint64_t next = next_bio_behind(part);  // one that was not seen queued lies between
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
            note_flush_entry(i, b.rwbs);
            says(Conclusion::Hop::kIssue, bios_[bio.index].ordinal, bio.by_pointer, bio.ambiguous);
        } else {
            bios_[bio.index].bio.merged = true;
            ++rec.r.merges;
        }
        rec.r.ambiguous = rec.r.ambiguous || bio.ambiguous;
        left -= b.nr_sectors;
        part.sector += b.nr_sectors;
        part.bio = 0;
        attach(bio.index, i, false, bio.by_pointer);
    }
    enter_chains(i);
    return i;
}

Fate Engine::issue(const BlockEvent &e) {
    ++counts.issues;
    if (is_flush_op(e)) return issue_flush(e);
    const Found found = request_for(e, BlockKind::kRqIssue);
    Index i = found.index;
    bool known = found.index != kNil;
    if (known) {
        const ReqRec &rec = requests_[i];
        if (rec.step == Step::kAllocated && rec.r.queue_tid == e.tid && !rec.r.ambiguous)
            issues_.note(e.tid, rec.ordinal, now_);
        says(Conclusion::Hop::kIssue, rec.ordinal, found.by_pointer, rec.r.ambiguous);
    } else {
        says(Conclusion::Hop::kIssue, 0, false, false);
        i = issue_of_bios(e);
        check_allocated(e, i);
        known = !requests_[i].bios.empty();
    }
    begin_issue(e, i);
    if (const Index *first = found.by_pointer && bio_of(e) ? by_bio_.find(e.bio) : nullptr)
        if (bios_[*first].bio.merged && bios_[*first].bio.sector == e.sector) confirm_bio(*first, i);
    const ReqRec &rec = requests_[i];
    if (!known && rec.r.kind == IoKind::kOther) {  // pass-through: it has no bio of a file, and begins here
        requests_[i].listed = true;
        enlist(device(e.dev).passthrough, i);
        return Fate::kBackground;
    }
    if (!known) {
        ++counts.unmatched_issue;
        return Fate::kOrphanRequest;
    }
    return stepped(e, i);
}

void Engine::begin_issue(const BlockEvent &e, Index i) {
    ReqRec &rec = requests_[i];
    rec.step = Step::kIssued;
    rec.issue_ordinal = now_;
    if (!rec.is_flush) {
        if (rec.r.first_issue_ns == kNoTime) {
            rec.r.sector = e.sector;
            rec.r.nr_sectors = e.nr_sectors;
        }
        rekey(i, e.sector, e.nr_sectors);
        // The flush machinery takes PREFLUSH off every such write, FUA where the device has none: those complete twice.
        const std::uint32_t lost = rec.entry_flags & ~e.rwbs;
        rec.twice = e.nr_sectors > 0 && (lost & (rwbs::kFua | rwbs::kPreflush)) != 0;
        rec.needs_flush = (lost & rwbs::kFua) != 0;
        if (rec.waits_flush) {
            forget(device(e.dev).flush_waiters, i);
            rec.waits_flush = false;
        }
    }
    rec.r.issue_ns = e.ts_ns;
    rec.r.issue_tid = e.tid;
    rec.r.issue_comm = e.comm;
    rec.r.issue_cpu = e.cpu;
    Device &d = device(e.dev);
    d.has_issue = true;
    if (rec.r.first_issue_ns == kNoTime) {
        check_inserted(rec);
        took(d, rec.r.getrq_ns, e.ts_ns);
        rec.r.first_issue_ns = e.ts_ns;
        rec.r.in_flight = d.in_flight;
    }
    rec.dev_completions = d.completions;
    if (!rec.in_device) d.most_in_flight = std::max(d.most_in_flight, ++d.in_flight);
    rec.in_device = true;
}

Fate Engine::requeue(const BlockEvent &e) {
    ++counts.requeues;
    Found found;
    if (is_flush_op(e)) found = flush_to_complete(e);
    else found = request_for(e, BlockKind::kRqRequeue);
    if (!found) {
        ++counts.unmatched_requeue;
        return Fate::kOrphanRequest;
    }
    ReqRec &rec = requests_[found.index];
    ++rec.r.requeues;
    rec.step = Step::kRequeued;
    leave_device(rec);
    return stepped(e, found.index);
}

Fate Engine::complete(const BlockEvent &e) {
    ++counts.completions;
    if (e.nr_sectors == 0) return complete_empty(e);
    if (const Index i = has_contested_ && !rq_of(e) ? exchanged(e) : kNil; i != kNil) {
        const Contested *its = contested_by_one_that_waits(requests_[i]);
        BlockEvent own = e;
        own.ts_ns = its->at_ns;
        own.cpu = its->cpu;
        return completed_whole(own, i);
    }
    Found found = request_for(e, BlockKind::kRqComplete);
    if (!found) found.index = completed_unissued(e);
    if (!found) {
        says(Conclusion::Hop::kComplete, 0, false, false);
        ++counts.unmatched_complete;
        if (device(e.dev).has_issue) came_from_nowhere(e);
        return Fate::kOrphanRequest;
    }
    const Index i = found.index;
    ReqRec &rec = requests_[i];
    check_issued(e, rec);
    says(Conclusion::Hop::kComplete, rec.issue_ordinal ? rec.issue_ordinal : rec.ordinal, found.by_pointer,
         rec.r.ambiguous);
    if (e.error != 0) rec.r.error = e.error;
    if (!rec.r.ambiguous && rec.step == Step::kIssued && e.cpu != kNoCpu) {
        Device &d = device(e.dev);
        if (rec.r.issue_cpu == e.cpu) ++d.cpu_kept;
        else d.cpu_changed = true;
        note_completion(d, rec.r.issue_cpu, e.cpu);
    }
    if (e.nr_sectors < rec.remaining) {
        ++counts.partial_completions;
        rekey(i, rec.start + e.nr_sectors, rec.remaining - e.nr_sectors);
        return stepped(e, i);
    }
    if (found.ambiguous) note_contested(e, i);
    return completed_whole(e, i);
}

Fate Engine::completed_whole(const BlockEvent &e, Index i) {
    ReqRec &rec = requests_[i];
    leave_chains(i);
    completed(e, i);
    if (rec.twice) {
        rec.step = Step::kDataDone;
        wait_for_second_completion(e, i);
        return stepped(e, i);
    }
    rec.r.end_ns = e.ts_ns;
    const Fate fate = stepped(e, i);
    close_request(i);
    return fate;
}

// Request-based dm (multipath): the clone that goes to the lower device has no Q and no G of its own, but what it
// serves is the upper request's.
Fate Engine::rq_remap(const BlockEvent &e) {
    BlockEvent upper = e;
    upper.dev = e.old_dev;
    upper.sector = e.old_sector;
    upper.rq = 0;
    upper.cpu = kNoCpu;
    const Found found = request_at(upper, BlockKind::kRqComplete);
    if (!found) return Fate::kOrphanRequest;
    const Index i = new_request(e, e.sector, e.nr_sectors);
    if (e.rq) set_pointer(i, e.rq);
    const Request &from = requests_[found.index].r;
    Request &r = requests_[i].r;
    r.queue_ns = from.queue_ns;
    r.queue_tid = from.queue_tid;
    r.queue_comm = from.queue_comm;
    r.queue_cpu = from.queue_cpu;
    r.ambiguous = from.ambiguous;
    r.bios = from.bios;
    r.owners = from.owners;
    enter_chains(i);
    return stepped(e, i);
}

// A pointer says at the issue that the bio is this request's; adjacency may have put it elsewhere.
void Engine::confirm_bio(Index b, Index i) {
    BioRec &bio = bios_[b];
    if (bio.request != i) {
        ++counts.corrected_merges;
        if (const Index other = bio.request; other != kNil) {
            ReqRec &wrong = requests_[other];
            if (wrong.r.merges > 0) --wrong.r.merges;
            if (wrong.step != Step::kIssued && wrong.remaining > bio.bio.nr_sectors) {
                const bool front = wrong.start == bio.bio.sector;
                rekey(other, front ? wrong.start + bio.bio.nr_sectors : wrong.start,
                      wrong.remaining - bio.bio.nr_sectors);
                wrong.r.sector = wrong.start;
                wrong.r.nr_sectors = wrong.remaining;
            }
            detach(b);
        }
        bio.bio.merged = true;
        ++requests_[i].r.merges;
        const auto &bios = requests_[i].bios;
        attach(b, i, !bios.empty() && bio.bio.sector < bios_[bios.front()].bio.sector, true);
    }
    bio.confirmed = true;
    bio.doubtful = false;
    said_.merged_bio = bio.ordinal;
    said_.issue = requests_[i].issue_ordinal;
    said_.place = {requests_[i].r.dev, requests_[i].start};
}

// BPF's collector names every further bio of a request at its issue: adjacency may have put it elsewhere.
Fate Engine::rq_bio(const BlockEvent &e) {
    if (!pointers_) return Fate::kContext;
    has_rq_bio_ = true;
    const Index *rq = by_rq_.find(e.rq), *bio = by_bio_.find(e.bio);
    if (!rq || !bio || e.rq == 0 || e.bio == 0 || bios_[*bio].finished) {
        ++counts.unmatched_rq_bio;
        return Fate::kOrphanRequest;
    }
    const Index i = *rq;
    confirm_bio(*bio, i);
    return stepped(e, i);
}

}  // namespace opline::block_model
