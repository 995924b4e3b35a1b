// SPDX-License-Identifier: MIT
// What the links are worth once a request or a bio is done: cuts for the ops that waited, rows for the tables.
#include <algorithm>
#include <tuple>

#include "link/linker.hpp"

namespace opline {

const Flush *Linker::flush_of(const Request &r) const {
    // One with data has an issue of its own: that it is missing is a loss.
    if (r.flushed_by == 0 || r.nr_sectors != 0 || r.issue_ns != kNoTime) return nullptr;
    for (const Flush &f : flushes_)
        if (f.request == r.flushed_by) return &f;
    return nullptr;
}

void Linker::wait_for(std::uint64_t op, std::int64_t q, std::int64_t floor_ns) {
    for (auto &w : waiting_) {
        if (w.op != op) continue;
        if (q != kNoTime && (w.q == kNoTime || q < w.q)) w.q = q;
        return;
    }
    waiting_.push_back({op, q, floor_ns});
}

// Those that are named and those that the syncs cover, each once. Syncs of one target cover overlapping runs of writes.
std::uint32_t Linker::distinct_ops(std::vector<const Sync *> &syncs) {
    if (syncs.empty() && served_.size() < 2) return static_cast<std::uint32_t>(served_.size());  // what most serve
    std::sort(served_.begin(), served_.end());
    served_.erase(std::unique(served_.begin(), served_.end()), served_.end());
    std::sort(syncs.begin(), syncs.end(), [](const Sync *a, const Sync *b) {
        return std::tie(a->target, a->first) < std::tie(b->target, b->first);
    });
    std::uint64_t covered = 0, named = 0, end = 0, target = 0;
    for (const Sync *s : syncs) {
        if (s->target != target) end = 0;
        target = s->target;
        if (s->last > end) covered += s->last - std::max(s->first, end);
        end = std::max(end, s->last);
    }
    for (auto ref : served_)
        if (const Op *op = stitcher_.ops().find(ref))
            named += std::any_of(syncs.begin(), syncs.end(), [&](const Sync *s) { return s->covers(*op); });
    return static_cast<std::uint32_t>(served_.size() + covered - named);
}

bool Linker::waiters_known(const Request &r) const {
    return std::all_of(r.bios.begin(), r.bios.end(), [this](std::uint64_t bio) {
        const BioLink *link = link_of(bio);
        return !link || (!link->batch && !link->sync && !link->shared && !link->journal && !link->others);
    });
}

void Linker::doubt(const Request &r) {
    for (auto id : r.bios)
        if (BioLink *link = find_link(id)) link->doubtful = true;
}

bool Linker::lost_between(const BioLink &link, const Request &r) const {
    std::int64_t since_ns = kNoTime, until_ns = kNoTime;
    for (const std::int64_t ns : {link.queue_ns, r.queue_ns, r.getrq_ns, r.insert_ns, r.issue_ns, r.complete_ns}) {
        if (ns == kNoTime) continue;
        since_ns = since_ns == kNoTime ? ns : std::min(since_ns, ns);
        until_ns = std::max(until_ns, ns);
    }
    return until_ns != kNoTime && lost_between(since_ns, until_ns);
}

// When the first of the request's bios that are the batch's was queued.
std::int64_t Linker::queued_for(const Batch &batch, const Request &r) {
    std::int64_t first_ns = kNoTime;
    for (auto id : r.bios)
        if (const BioLink *link = find_link(id); link && link->batch.get() == &batch && link->queue_ns != kNoTime)
            first_ns = first_ns == kNoTime ? link->queue_ns : std::min(first_ns, link->queue_ns);
    return first_ns == kNoTime ? r.queue_ns : first_ns;
}

// Its steps, but for the Q, which is another one for each op.
RequestCut Linker::cut_of(const Request &r) const {
    RequestCut cut;
    cut.request = r.id;
    cut.g = r.getrq_ns;
    cut.first_request = r.first_request;
    cut.first_g = r.first_getrq_ns;
    cut.i = r.insert_ns;
    cut.d = r.issue_ns;
    cut.c = r.complete_ns;
    cut.preflush = r.preflush_ns;
    if (r.complete_ns != kNoTime && r.end_ns > r.complete_ns) cut.end = r.end_ns;
    cut.queue_tid = r.queue_tid;
    cut.issue_tid = r.issue_tid;
    cut.dev = r.dev;
    cut.sector = r.sector;
    if (const Flush *flush = flush_of(r)) {
        cut.d = flush->issue_ns;
        cut.issue_tid = flush->issue_tid;
    }
    return cut;
}

Served Linker::request_done(const Request &r) {
    waiting_.clear();
    served_.clear();
    std::vector<const Sync *> syncs;
    std::vector<Batch *> batches;
    Served served;
    bool read_ahead = false;  // who waits for it is known
    auto add_sync = [&](const Sync *s) {
        if (std::find(syncs.begin(), syncs.end(), s) == syncs.end()) syncs.push_back(s);
    };
    for (auto id : r.bios) {
        BioLink *link = find_link(id);
        if (!link) continue;
        link->issue_ns = r.issue_ns;
        link->complete_ns = r.complete_ns;
        link->request_ambiguous = r.ambiguous;
        check(*link, r.getrq_ns, r.complete_ns);
        // Of a request in whose time something is missing it is not certain that it is this one.
        link->doubtful = link->doubtful || lost_between(*link, r);
        if (link->chosen != 0) {
            served_.push_back(link->chosen);
            wait_for(link->chosen, link->queue_ns, link->sync ? link->sync->begin_ns : kNoTime);
        }
        if (link->read_ahead && !std::exchange(read_ahead, true)) wait_for_read_ahead(*link, r);
        if (link->sync && link->others && (!link->shared || link->shared->file == kNoFile)) add_sync(link->sync.get());
        if (link->batch && std::find(batches.begin(), batches.end(), link->batch.get()) == batches.end())
            batches.push_back(link->batch.get());
        if (!link->shared) continue;
        for (const auto &p : link->shared->pages) {
            served_.push_back(p.op);
            if (Op *op = stitcher_.ops().find(p.op); waits(op)) wait_for(p.op, link->queue_ns, op->sync_ns);
        }
        for (const auto &s : link->shared->syncs) {
            served_.push_back(s->op);
            if (link->journal) add_sync(s.get());
            if (s->open && r.complete_ns != kNoTime) wait_for(s->op, link->queue_ns, s->begin_ns);
        }
    }
    served.ops = distinct_ops(syncs);
    if (served.ops == 1) served.only = served_.front();

    if (r.kind == IoKind::kFlush && r.getrq_ns == kNoTime && r.issue_ns != kNoTime) {
        flushes_[next_flush_++ % flushes_.size()] = {r.id, r.issue_ns, r.issue_tid};
        return served;
    }
    RequestCut cut = cut_of(r);
    // Per op, the Q of its own first bio: a merged request was queued by others before.
    for (const WaitingBio &w : waiting_) {
        Op *op = stitcher_.ops().find(w.op);
        if (!op) continue;
        cut.q = w.q != kNoTime ? w.q : r.queue_ns;
        cut.floor_ns = w.floor_ns;
        op->requests.push_back(cut);
        for (const auto &s : syncs_.open())
            if (s->op == w.op) s->batch->requests.push_back(cut);
    }
    cut.floor_ns = kNoTime;
    for (Batch *batch : batches) {
        cut.q = queued_for(*batch, r);
        batch->requests.push_back(cut);
        if (r.complete_ns != kNoTime) batch_waits_[batch->space].note(r.complete_ns, batch->end_ns);
    }
    return served;
}

const std::vector<LinkRow> &Linker::links(const Bio &bio) {
    link_rows_.clear();
    const BioLink *link = link_of(bio.id);
    if (!link) return link_rows_;
    auto row = [&](std::uint64_t op, std::uint32_t rules, std::uint64_t bytes, bool ambiguous) {
        for (auto &r : link_rows_)
            if (r.op == serial(op)) {
                r.bytes += bytes;
                return;
            }
        link_rows_.push_back({serial(op), rules | (link->inherited ? rule::kParent : 0), bytes, link->others,
                              ambiguous || link->request_ambiguous, link->doubtful});
    };
    if (link->chosen != 0)
        row(link->chosen, link->rules, std::min(link->own_bytes, std::uint64_t{bio.nr_sectors} * 512), link->ambiguous);
    if (!link->shared) return link_rows_;
    for (const auto &[op, bytes] : link->shared->readers)
        row(op, maps_.empty() ? rule::kSector : rule::kExtent, std::min(bytes, std::uint64_t{bio.nr_sectors} * 512),
            false);
    for (const auto &p : link->shared->pages)
        if (waits(stitcher_.ops().find(p.op))) row(p.op, rule::kPage, p.bytes, p.ambiguous);
    for (const auto &s : link->shared->syncs)
        if (s->open && done_ns(bio) != kNoTime) row(s->op, rule::kBatch, 0, false);
    return link_rows_;
}

std::int64_t Linker::done_ns(const Bio &bio) const {
    const BioLink *link = link_of(bio.id);
    return link && link->complete_ns != kNoTime ? link->complete_ns : bio.complete_ns;
}

const std::vector<DeferredRow> &Linker::deferred(const Bio &bio) {
    deferred_rows_.clear();
    const BioLink *link = link_of(bio.id);
    // What a remapped bio carries is said of the one that it was remapped from.
    if (!link || !link->shared || (link->inherited && bio.split_from == 0)) return deferred_rows_;
    for (const auto &p : link->shared->pages) {
        Op *op = stitcher_.ops().find(p.op);
        if (waits(op)) continue;
        const std::uint64_t id = op ? op->serial : serial_of(p.op);
        auto it = std::find_if(deferred_rows_.begin(), deferred_rows_.end(),
                               [&](const DeferredRow &r) { return r.op == id; });
        if (it == deferred_rows_.end()) {
            deferred_rows_.push_back(
                {id, 0, p.written_ns, false, p.ambiguous || link->request_ambiguous, link->doubtful});
            it = std::prev(deferred_rows_.end());
            if (op) ++op->deferred;
        }
        it->bytes += p.bytes;
    }
    for (auto &r : deferred_rows_) r.shared = r.bytes < std::uint64_t{bio.nr_sectors} * 512;
    return deferred_rows_;
}

}  // namespace opline
