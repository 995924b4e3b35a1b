// SPDX-License-Identifier: MIT
#include "link/linker.hpp"

#include <algorithm>

namespace opline {
namespace {

// Ops wrote pages of the bio.
bool of_pages(const BioLink &link) { return link.shared && !link.shared->pages.empty(); }

// The bio's place also leads to the thread's op: as the only op, or as one of several.
bool is_placed(const BioLink &link, std::uint64_t placed) { return placed == link.chosen || link.own_place; }

}  // namespace

Linker::Linker(OpLocator &locator, const Plan &plan, StringPool &strings)
    : l_{locator,
         strings,
         FileMaps(plan.files, &locator.identities().hosts),
         Processes(strings, locator.identities()),
         {},
         {},
         {}},
      syncs_(l_, plan, links_, places_) {
    auto has_io = [](const PointSpec &p) { return p.in_flight != IoWindow::kNone; };
    if (std::any_of(plan.points.begin(), plan.points.end(), has_io))
        for (const auto &p : plan.points) l_.io_points.push_back(has_io(p));
}

void Linker::remapped(const BlockEvent &ev) {
    if (ev.tid > 0) remaps_.put(ev.tid, {{ev.dev, ev.sector, ev.nr_sectors}, ev.old_dev, ev.old_sector});
}

// The kernel remaps a partition's bio in the queueing thread, right before Q (block/blk-core.c, submit_bio_noacct).
Sectors Linker::within_partition(const BlockEvent &ev, const Sectors &run) {
    const Remap *remap = ev.tid > 0 ? remaps_.find(ev.tid) : nullptr;
    if (!remap) return run;
    const Remap last = *remap;
    remaps_.erase(ev.tid);
    if (last.to.dev != run.dev || last.to.first != run.first) return run;
    return {last.dev, last.sector, run.count};
}

BlockEvent Linker::with_own_number(const BlockEvent &ev, BioLink &link) {
    BlockEvent own = ev;
    if (l_.locator.same_thread(link.queuer.host, ev)) return own;
    own.tid = -1;
    const auto sync = syncs_.syncs().of_thread(link.queuer.host, ev.tid);
    Op *op = sync ? l_.locator.find(sync->op) : l_.locator.current_op(link.queuer.host, ev.tid);
    if (op && op->state == OpState::kOpen) op->number_taken = link.other_process = true;
    if (l_.locator.current_batch(link.queuer.host, ev.tid)) link.other_process = true;
    return own;
}

void Linker::choose(const BlockEvent &ev, const Bio &bio, const Sectors &within, Op *thread_op, BioLink &link) {
    const std::uint64_t placed = link.by_extent != 0 ? link.by_extent : link.by_sector;
    const std::uint32_t place_rule = link.by_extent != 0 ? rule::kExtent : rule::kSector;
    if (!thread_op) {
        // A bio queued with an open batch belongs to the batch: a member may already be rewriting the same sectors.
        if (ev.tid > 0) link.batch = l_.locator.current_batch(link.queuer.host, ev.tid);
        if (link.batch || link.pages_owned) return;  // the last writer of the pages owns the bio
        link.chosen = placed;
        link.dirtied = link.by_extent != 0 && is_write(bio);
        link.rules = placed != 0 ? place_rule : 0;
        link.ambiguous = link.ambiguous || link.candidates > 1 ||
                         (link.by_extent != 0 && places_.file_of(link.by_extent) == kNoFile);
        if (Op *op = places_.parts().empty() ? l_.locator.find(placed) : nullptr)
            ++places_.target_of(*op).device(within.dev).placed;
        return;
    }
    link.chosen = op_ref(*thread_op);
    link.rules = rule::kThread;
    link.ambiguous = false;
    link.doubtful = !l_.lost.empty() && l_.lost.overlap(thread_op->begin_ns, ev.ts_ns);
    places_.target_of(*thread_op).device(within.dev);  // the target's threads use the device
    const bool own_data = is_data(bio) && !link.sync && (bio.rwbs & rwbs::kRahead) == 0;
    const bool elsewhere = own_data && places_.outside(bio, within, *thread_op, link);
    const bool other = placed != 0 && placed != link.chosen && link.candidates == 1 && !link.pages_owned && !link.sync;
    if (elsewhere) ++l_.counts.elsewhere;
    if (elsewhere || (other && !(thread_op->io_open && places_.overlap(*thread_op, within) != Overlap::kNone))) {
        // The op with bytes in flight at the place is right. A thread's op without bytes in flight at the place
        // explains nothing.
        link.chosen = other ? placed : 0;
        link.rules = other ? place_rule : 0;
        link.dirtied = other && link.by_extent != 0 && is_write(bio);
        const bool decided = thread_op->io_open && thread_op->has_length;
        link.ambiguous = !(other && link.by_extent != 0 && decided && places_.file_of(placed) != kNoFile);
        return;
    }
    if (is_placed(link, placed)) link.rules |= place_rule;
    else if (other) link.ambiguous = true;  // two rules with different answers
    link.waited_for = thread_op->io_open && (own_data || (is_flush(bio) && !link.sync));
}

// The bio was made of another bio already judged by the rules. After a remap all of the parent's work is inherited,
// after a split only the work on the bio's sectors.
Owner Linker::inherit(const Bio &bio, BioLink &link) {
    const std::uint64_t from = bio.split_from != 0 ? bio.split_from : bio.parent;
    BioLink *parent = from != 0 ? links_.find(from) : nullptr;
    link.inherited = true;
    link.chosen = bio.owner.op;
    link.rules = rule::kParent;
    if (!parent) return bio.owner;
    link.chosen = parent->chosen;
    link.batch = parent->batch;
    link.sync = parent->sync;
    link.rules |= parent->rules;
    link.others = parent->others;
    link.journal = parent->journal;
    link.ambiguous = parent->ambiguous;
    link.doubtful = parent->doubtful;
    link.own_bytes = parent->own_bytes == 0 ? 0 : std::uint64_t{bio.nr_sectors} * 512;
    link.waited_for = parent->waited_for;
    link.dirtied = parent->dirtied && bio.split_from != 0;
    if (bio.split_from != 0) {
        link.read_ahead = parent->read_ahead;
        link.read_ahead_dev = parent->read_ahead_dev;
        link.read_ahead_shift = parent->read_ahead_shift;
    }
    link.journal_tid = parent->journal_tid;
    link.commit = parent->commit;
    if (parent->shared) {
        SharedWork &work = shared_work(link);
        work = *parent->shared;
        if (bio.split_from != 0) {
            auto keep = [](std::vector<PageShare> &pages, std::uint64_t first, std::uint64_t last) {
                for (auto &p : pages) {
                    p.first = std::max(p.first, first);
                    p.last = std::max(p.first, std::min(p.last, last));
                    p.bytes = (p.last - p.first) * 512;
                }
                pages.erase(std::remove_if(pages.begin(), pages.end(), [](const PageShare &p) { return p.bytes == 0; }),
                            pages.end());
            };
            keep(parent->shared->pages, 0, bio.sector);
            keep(work.pages, bio.sector, kNoSector);
        }
    }
    if (link.sync || link.journal) links_.add_sync_bio(bio.id);
    return bio.owner;
}

void Linker::count(const BioLink &link) {
    const std::uint64_t placed = link.by_extent != 0 ? link.by_extent : link.by_sector;
    // With several ops on the same sectors the place rules have no single answer.
    if (link.batch || link.journal) ++l_.counts.batch;
    else if (link.shared && !link.shared->pages.empty()) ++l_.counts.page;
    else if (link.candidates > 1) ++l_.counts.ambiguous;
    else if (link.by_thread != 0 && placed != 0) ++(link.by_thread == placed ? l_.counts.agree : l_.counts.differ);
    else if (link.by_thread != 0) ++l_.counts.thread_only;
    else if (placed != 0) ++l_.counts.sector_only;
    else ++l_.counts.neither;
    if (link.by_extent != 0) ++l_.counts.extents;
}

// Work of an op for all ops whose records the work reaches belongs to the batch, the op's own part included.
bool Linker::works_for_all(std::uint32_t host, std::int64_t tid) {
    const auto batch = tid > 0 ? l_.locator.current_batch(host, tid) : nullptr;
    return batch && (batch->opened_in_need || batch->reaches);
}

bool Linker::has_owner(const BioLink &link) {
    return link.chosen != 0 || link.batch || link.journal || link.others || of_pages(link);
}

void Linker::mark_read_ahead(const Bio &bio, const Sectors &run, const Sectors &within, BioLink &link) {
    if (bio.kind != IoKind::kRead || (bio.rwbs & rwbs::kRahead) == 0) return;
    link.read_ahead = true;
    link.read_ahead_dev = within.dev;
    link.read_ahead_shift = run.first - within.first;
}

Owner Linker::bio_queued(const BlockEvent &queued, const Bio &bio, std::uint32_t host) {
    BioLink &link = links_.add(bio.id);
    link.queue_ns = bio.since_ns;
    link.queuer = {host, queued.pid, queued.kthread, bio.comm};
    if (bio.owner) return inherit(bio, link);
    const Sectors run{bio.dev, bio.sector, bio.nr_sectors}, within = within_partition(queued, run);
    const BlockEvent ev = with_own_number(queued, link);
    if (ev.tid > 0 && !syncs_.syncs().open().empty()) link.sync = syncs_.syncs().of_thread(host, ev.tid);
    Op *thread_op = link.sync ? l_.locator.find(link.sync->op) : l_.locator.op_of_bio(host, ev, bio);
    if (thread_op && works_for_all(host, ev.tid)) thread_op = nullptr;
    if (thread_op) link.by_thread = op_ref(*thread_op);
    places_.no_parts();
    if (is_data(bio)) {
        places_.find_parts(run, within);
        if (!places_.parts().empty() || !link.sync) places_.find_in_flight(bio, within, link);
        link.pages_owned = is_write(bio) && !pages_.owners().empty() && pages_.pages_have_owner();
    }
    choose(ev, bio, within, thread_op, link);
    mark_read_ahead(bio, run, within, link);
    if (!places_.parts().empty() && is_write(bio)) pages_.share_pages(bio, within, link);
    syncs_.share_sync(bio, within, link);
    if (!has_owner(link))
        if (Op *op = l_.locator.own_op(host, queued, bio)) {
            link.chosen = link.by_thread = op_ref(*op);
            link.rules = rule::kThread;
        }
    count(link);
    l_.counts.other_process += link.other_process && (link.chosen == 0 || ev.tid != queued.tid);

    Owner owner;
    if (Op *op = l_.locator.find(link.chosen)) {
        ++op->bios;
        ++op->bios_on_their_way;
        if (is_data(bio) && op->io_open && directions_.right_way(*op, bio)) {
            if (op->data_bytes == 0) op->data_dev = within.dev;
            op->data_bytes += std::uint64_t{bio.nr_sectors} * 512;
            if (link.read_ahead) op->read_ahead_bytes += std::uint64_t{bio.nr_sectors} * 512;
        }
        owner.op = link.chosen;
    } else if (of_pages(link)) {
        owner.op = link.shared->pages.front().op;
    } else if (link.journal) {
        owner.op = link.shared->syncs.front()->op;
    }
    if (link.chosen != 0 && !link.others && link.own_bytes == 0) link.own_bytes = std::uint64_t{bio.nr_sectors} * 512;
    const Sync *sync = link.journal ? link.shared->syncs.front().get() : link.others ? link.sync.get() : nullptr;
    owner.batch = link.batch ? link.batch->serial + 1 : sync ? sync->batch->serial + 1 : 0;
    return owner;
}

void Linker::wrote(Op &op, std::int64_t at_ns) {
    places_.learn_amount(op);
    if (directions_.direction_of(op) != Direction::kWrite || op.length_bytes <= 0 || op.offset_bytes < 0) return;
    syncs_.wrote(op);
    pages_.wrote(op, at_ns);
}

}  // namespace opline
