// SPDX-License-Identifier: MIT
#include "linker.hpp"

#include <algorithm>

namespace opline {

void Linker::by_sector(const Bio &bio, BioLink &link) {
    if (bio.nr_sectors == 0 || bio.sector == kNoSector) return;
    bool unserved = false;  // by_sector is an op without a bio
    const std::uint64_t first = bio.sector * 512, last = first + std::uint64_t{bio.nr_sectors} * 512;
    for (auto ref : stitcher_.io_windows()) {
        const Op *op = stitcher_.ops().find(ref);
        if (!op || op->length_bytes <= 0) continue;
        const auto begin = static_cast<std::uint64_t>(op->offset_bytes);
        if (first < begin || last > begin + static_cast<std::uint64_t>(op->length_bytes)) continue;
        ++link.sector_candidates;
        // The oldest that has no bio yet, else the oldest: first in, first out.
        const bool better = op->bios == 0 ? !unserved || ref < link.by_sector : !unserved && (link.by_sector == 0 || ref < link.by_sector);
        if (better) link.by_sector = ref;
        unserved = unserved || op->bios == 0;
    }
}

Owner Linker::bio_queued(const BlockEvent &ev, const Bio &bio, std::uint32_t host) {
    BioLink &link = links_[bio.id];
    link.queue_ns = bio.queue_ns;
    link.sector = bio.sector;
    link.tid = bio.tid;
    if (bio.owner) {
        link.inherited = true;
        link.chosen = bio.owner.op;
        if (bio.parent != 0)
            if (auto parent = links_.find(bio.parent)) link.batch = parent->batch;
        return bio.owner;
    }
    if (Op *op = stitcher_.op_of_bio(host, ev, bio)) link.by_thread = op_ref(*op);
    by_sector(bio, link);
    // What a thread queues while it has a batch open is the batch's: a member may be rewriting the same sectors already.
    link.chosen = link.by_thread;
    if (link.chosen == 0 && ev.tid > 0) link.batch = stitcher_.current_batch(host, ev.tid);
    if (link.chosen == 0 && !link.batch) link.chosen = link.by_sector;
    if (link.chosen == 0 && !link.batch)
        if (Op *op = stitcher_.own_op(host, ev, bio)) link.chosen = link.by_thread = op_ref(*op);

    // With several ops on the same sectors the sector rule has no answer of its own.
    if (link.batch) ++counts_.batch;
    else if (link.sector_candidates > 1) ++counts_.ambiguous;
    else if (link.by_thread != 0 && link.by_sector != 0) ++(link.by_thread == link.by_sector ? counts_.agree : counts_.differ);
    else if (link.by_thread != 0) ++counts_.thread_only;
    else if (link.by_sector != 0) ++counts_.sector_only;
    else ++counts_.neither;

    if (Op *op = stitcher_.ops().find(link.chosen)) ++op->bios;
    Owner owner;
    owner.op = link.chosen;
    owner.batch = link.batch ? link.batch->serial + 1 : 0;
    return owner;
}

const Flush *Linker::flush_of(const Request &r) const {
    if (r.flushed_by == 0 || r.issue_ns != kNoTime) return nullptr;
    for (const Flush &f : flushes_)
        if (f.request == r.flushed_by) return &f;
    return nullptr;
}

void Linker::request_done(const Request &r) {
    if (r.kind == IoKind::kFlush && r.getrq_ns == kNoTime && r.issue_ns != kNoTime) {
        flushes_[next_flush_++ % flushes_.size()] = {r.id, r.issue_ns, r.issue_tid};
        return;
    }
    RequestCut cut;
    cut.request = r.id;
    cut.g = r.getrq_ns;
    cut.i = r.insert_ns;
    cut.d = r.issue_ns;
    cut.c = r.complete_ns;
    cut.queue_tid = r.queue_tid;
    cut.issue_tid = r.issue_tid;
    cut.dev = r.dev;
    cut.sector = r.sector;
    if (const Flush *flush = flush_of(r)) {
        cut.d = flush->issue_ns;
        cut.issue_tid = flush->issue_tid;
    }
    // Per op, the Q of its own first bio: a merged request was queued by others before.
    auto earliest = [&](auto owned_by) {
        std::int64_t q = kNoTime;
        for (auto id : r.bios) {
            const BioLink *link = link_of(id);
            if (!link || !owned_by(*link) || link->queue_ns == kNoTime) continue;
            if (q == kNoTime || link->queue_ns < q) q = link->queue_ns;
        }
        return q == kNoTime ? r.queue_ns : q;
    };
    for (const auto &owner : r.owners) {
        if (Op *op = stitcher_.ops().find(owner.op)) {
            cut.q = earliest([&](const BioLink &l) { return l.chosen == owner.op; });
            op->requests.push_back(cut);
        }
    }
    std::vector<const Batch *> served;
    for (auto id : r.bios) {
        const BioLink *link = link_of(id);
        if (!link || !link->batch) continue;
        if (std::find(served.begin(), served.end(), link->batch.get()) != served.end()) continue;
        served.push_back(link->batch.get());
        cut.q = earliest([&](const BioLink &l) { return l.batch == link->batch; });
        link->batch->requests.push_back(cut);
    }
}

}  // namespace opline
