// SPDX-License-Identifier: MIT
#include "link/request_links.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace opline {

const Flush *RequestLinks::flush_of(const Request &r) const {
    // A request with data has its own issue: a missing issue is a loss.
    if (r.flushed_by == 0 || r.nr_sectors != 0 || r.issue_ns != kNoTime) return nullptr;
    for (const Flush &f : flushes_)
        if (f.request == r.flushed_by) return &f;
    return nullptr;
}

void RequestLinks::wait_for(std::uint64_t op, std::int64_t q, std::int64_t floor_ns) {
    for (auto &w : waiting_) {
        if (w.op != op) continue;
        if (q != kNoTime && (w.q == kNoTime || q < w.q)) w.q = q;
        return;
    }
    waiting_.push_back({op, q, floor_ns});
}

// The number of different ops among the named ops and the ops covered by the syncs. Syncs of one target cover
// overlapping runs of writes.
std::uint32_t RequestLinks::distinct_ops(std::vector<const Sync *> &syncs) {
    if (syncs.empty() && served_.size() < 2) return static_cast<std::uint32_t>(served_.size());  // the common case
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
        if (const Op *op = l_.locator.find(ref))
            named += std::any_of(syncs.begin(), syncs.end(), [&](const Sync *s) { return s->covers(*op); });
    return static_cast<std::uint32_t>(served_.size() + covered - named);
}

bool RequestLinks::waiters_known(const Request &r) const {
    return std::all_of(r.bios.begin(), r.bios.end(), [this](std::uint64_t bio) {
        const BioLink *link = links_.link_of(bio);
        return !link || (!link->batch && !link->sync && !link->shared && !link->journal && !link->others);
    });
}

void RequestLinks::doubt(const Request &r) {
    for (auto id : r.bios)
        if (BioLink *link = links_.find_link(id)) link->doubtful = true;
}

bool RequestLinks::lost_between(const BioLink &link, const Request &r) const {
    std::int64_t since_ns = kNoTime, until_ns = kNoTime;
    const auto note = [&](std::int64_t ns) {
        if (ns == kNoTime) return;
        since_ns = since_ns == kNoTime ? ns : std::min(since_ns, ns);
        until_ns = std::max(until_ns, ns);
    };
    note(link.queue_ns);
    for (const RequestStep &step : kRequestSteps) note(r.*step.of_request);
    return until_ns != kNoTime && l_.lost.overlap(since_ns, until_ns);
}

// The first Q among the request's bios of the batch.
std::int64_t RequestLinks::queued_for(const Batch &batch, const Request &r) {
    std::int64_t first_ns = kNoTime;
    for (auto id : r.bios)
        if (const BioLink *link = links_.find_link(id);
            link && link->batch.get() == &batch && link->queue_ns != kNoTime)
            first_ns = first_ns == kNoTime ? link->queue_ns : std::min(first_ns, link->queue_ns);
    return first_ns == kNoTime ? r.queue_ns : first_ns;
}

// The request's steps. Each op has its own Q.
RequestCut RequestLinks::cut_of(const Request &r) const {
    RequestCut cut;
    cut.request = r.id;
    for (const RequestStep &step : kRequestSteps) cut.*step.time = r.*step.of_request;
    cut.first_request = r.first_request;
    cut.first_g = r.first_getrq_ns;
    cut.unseen = r.unseen;
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

void RequestLinks::serve(Op &op, const Request &r) {
    RequestCut cut = cut_of(r);
    cut.q = r.queue_ns;
    op.requests.push_back(cut);
}

Served RequestLinks::request_done(const Request &r) {
    waiting_.clear();
    served_.clear();
    std::vector<const Sync *> syncs;
    std::vector<Batch *> batches;
    Served served;
    bool read_ahead = false;  // the waiter is known
    auto add_sync = [&](const Sync *s) {
        if (std::find(syncs.begin(), syncs.end(), s) == syncs.end()) syncs.push_back(s);
    };
    for (auto id : r.bios) {
        BioLink *link = links_.find_link(id);
        if (!link) continue;
        served.of_population = served.of_population || link->program_run != 0;
        link->issue_ns = r.issue_ns;
        link->complete_ns = r.complete_ns;
        link->request_ambiguous = r.ambiguous;
        link->completion_by = r.completion_by;
        checks_.check(*link, r.getrq_ns, r.complete_ns);
        // With events missing in the request's time, the request may be another one.
        link->doubtful = link->doubtful || lost_between(*link, r);
        if (link->chosen != 0) {
            served_.push_back(link->chosen);
            wait_for(link->chosen, link->queue_ns, link->sync ? link->sync->begin_ns : kNoTime);
        }
        if (link->read_ahead && !std::exchange(read_ahead, true)) wait_for_read_ahead(*link, r);
        if (link->shared && link->shared->file != kNoFile) wait_for_write_back(*link, r);
        if (link->sync && link->others && (!link->shared || link->shared->file == kNoFile)) add_sync(link->sync.get());
        if (link->batch && std::find(batches.begin(), batches.end(), link->batch.get()) == batches.end())
            batches.push_back(link->batch.get());
        if (!link->shared) continue;
        for (const auto &p : link->shared->pages) {
            served_.push_back(p.op);
            if (Op *op = l_.locator.find(p.op); waits(op)) wait_for(p.op, link->queue_ns, op->sync_ns);
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
    // For each op the Q of the op's own first bio: other ops queued a merged request before.
    for (const WaitingBio &w : waiting_) {
        Op *op = l_.locator.find(w.op);
        if (!op) continue;
        cut.q = w.q != kNoTime ? w.q : r.queue_ns;
        cut.floor_ns = w.floor_ns;
        op->requests.push_back(cut);
        for (const auto &s : syncs_.syncs().open())
            if (s->op == w.op) s->batch->requests.push_back(cut);
    }
    cut.floor_ns = kNoTime;
    for (Batch *batch : batches) {
        cut.q = queued_for(*batch, r);
        batch->requests.push_back(cut);
        if (r.complete_ns != kNoTime) checks_.note_batch(*batch, r.complete_ns);
    }
    return served;
}

// The pages are locked until the request is done (mm/filemap.c, filemap_update_page()): an op that reads some of the
// pages, and has not queued all bytes itself, cannot have ended before. The length of a vectored read is its return
// value: until then only the first byte is known.
void RequestLinks::wait_for_read_ahead(BioLink &link, const Request &r) {
    if (r.complete_ns == kNoTime || r.nr_sectors == 0 || r.sector == kNoSector) return;
    const Sectors run{r.dev, r.sector, r.nr_sectors},
        within{link.read_ahead_dev, r.sector - link.read_ahead_shift, r.nr_sectors};
    places_.find_parts(run, within);
    for (const std::uint64_t ref : l_.locator.io_windows()) {
        const Op *op = l_.locator.find(ref);
        if (!op || ref == link.chosen || op->window_host != link.queuer.host ||
            directions_.direction_of(*op) != Direction::kRead || op->begin_ns >= r.complete_ns)
            continue;
        const std::uint64_t own = op->data_bytes - op->read_ahead_bytes;
        if (op->has_length ? own >= static_cast<std::uint64_t>(op->length_bytes) : own > 0) continue;
        const std::uint64_t bytes = places_.bytes_in(*op, within);
        if (bytes > 0) wait_for_pages(link, ref, op->has_length ? bytes : 0, op->begin_ns);
    }
}

// The pages are under write-back until the request is done: a sync of the file that found such pages cannot have ended
// before (mm/filemap.c, __filemap_fdatawait_range()). A sync looks for pages dirty at its begin, and may skip pages
// written and queued later.
void RequestLinks::wait_for_write_back(BioLink &link, const Request &r) {
    if (r.complete_ns == kNoTime) return;
    for (const auto &s : syncs_.syncs().open()) {
        const Op *op = l_.locator.find(s->op);
        const auto older = [&](const PageShare &p) { return p.op != s->op && p.written_ns < s->begin_ns; };
        const auto &[pages, waiting, file, waiters] = *link.shared;
        if (!op || s == link.sync || s->op == link.chosen || s->host != link.queuer.host ||
            s->begin_ns >= r.complete_ns || (op->inode == 0 && op->file_name.empty()) || places_.file_of(s->op) != file)
            continue;
        if (link.queue_ns == kNoTime || link.queue_ns > s->begin_ns) {
            if (pages.empty() || !std::all_of(pages.begin(), pages.end(), older)) continue;
        }
        if (std::find(waiting.begin(), waiting.end(), s) == waiting.end())
            wait_for_pages(link, s->op, UINT64_MAX, s->begin_ns);
    }
}

void RequestLinks::wait_for_pages(BioLink &link, std::uint64_t op, std::uint64_t bytes, std::int64_t since_ns) {
    served_.push_back(op);
    wait_for(op, link.queue_ns, since_ns);
    shared_work(link).page_waiters.emplace_back(op, bytes);
    link.others = true;
}

}  // namespace opline
