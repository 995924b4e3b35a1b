// SPDX-License-Identifier: MIT
#include "link/linker.hpp"

#include <algorithm>

namespace opline {
Linker::Linker(Stitcher &stitcher, const Plan &plan, StringPool &strings)
    : stitcher_(stitcher),
      strings_(strings),
      maps_(plan.files),
      syncs_(stitcher.ops()),
      has_syncs_(std::any_of(plan.points.begin(), plan.points.end(),
                             [](const PointSpec &p) { return p.sync == IoWindow::kBegin; })),
      sync_space_(strings.intern("sync")) {
    auto has_io = [](const PointSpec &p) { return p.in_flight != IoWindow::kNone; };
    if (std::any_of(plan.points.begin(), plan.points.end(), has_io))
        for (const auto &p : plan.points) io_points_.push_back(has_io(p));
}

SharedWork &Linker::shared(BioLink &link) {
    if (!link.shared) link.shared = std::make_unique<SharedWork>();
    return *link.shared;
}

bool Linker::lost_between(std::int64_t begin_ns, std::int64_t end_ns) const {
    for (auto it = lost_.rbegin(); it != lost_.rend() && it->second >= begin_ns; ++it)
        if (it->first <= end_ns) return true;
    return false;
}

void Linker::discarded(std::int64_t begin_ns, std::int64_t end_ns) {
    auto later = [](std::int64_t at, const auto &interval) { return at < interval.second; };
    lost_.insert(std::upper_bound(lost_.begin(), lost_.end(), end_ns, later), {begin_ns, end_ns});
}

Target &Linker::target_of(const Op &op) {
    Target &t = targets_.of(op.target);
    if (!t.resolved) {
        t.resolved = true;
        if (maps_.size() == 1) t.file = 0;
        if (!op.file_name.empty()) t.file = maps_.by_path(op.file_name);
        if (op.inode != 0 && !maps_.empty()) t.file = maps_.by_inode(op.file_dev, op.inode);
        t.stacked = op.inode != 0 && t.file == kNoMap && !maps_.any_of(op.file_dev);
    }
    return t;
}

void Linker::remapped(const BlockEvent &ev) {
    if (ev.tid > 0) remaps_.put(ev.tid, {{ev.dev, ev.sector, ev.nr_sectors}, ev.old_dev, ev.old_sector});
}

// The kernel remaps a partition's bio in the thread that queues it, right before (block/blk-core.c, submit_bio_noacct).
Sectors Linker::within_partition(const BlockEvent &ev, const Sectors &run) {
    const Remap *remap = ev.tid > 0 ? remaps_.find(ev.tid) : nullptr;
    if (!remap) return run;
    const Remap last = *remap;
    remaps_.erase(ev.tid);
    if (last.to.dev != run.dev || last.to.first != run.first) return run;
    return {last.dev, last.sector, run.count};
}

Direction Linker::direction_of(const Op &op) {
    if (op.direction != Direction::kUnknown) return op.direction;
    if (op.op_class == recent_class_) return recent_direction_;
    auto [known, made] = class_directions_.insert(op.op_class);
    if (made) {
        const std::string &name = strings_.at(op.op_class);
        const bool read = name.find("read") != std::string::npos, write = name.find("write") != std::string::npos;
        *known = read == write ? Direction::kUnknown : read ? Direction::kRead : Direction::kWrite;
    }
    recent_class_ = op.op_class;
    return recent_direction_ = *known;
}

bool Linker::right_way(const Op &op, const Bio &bio) {
    switch (direction_of(op)) {
    case Direction::kRead: return bio.kind == IoKind::kRead;
    case Direction::kWrite: return bio.kind != IoKind::kRead;
    case Direction::kUnknown: break;
    }
    return true;
}

// The bytes that the op had in flight and the bio's: how they lie. Of a file whole pages reach the disk.
Linker::Overlap Linker::overlap(const Op &op, std::uint32_t file, const Sectors &within) {
    if (!op.has_offset || !op.has_length || op.length_bytes <= 0 || op.offset_bytes < 0) return Overlap::kNone;
    auto first = static_cast<std::uint64_t>(op.offset_bytes),
         last = first + static_cast<std::uint64_t>(op.length_bytes);
    auto lies = [&](std::uint64_t sector, std::uint64_t count) {
        const std::uint64_t from = sector * 512, to = from + count * 512;
        return from >= first && to <= last ? Overlap::kInside
               : from < last && to > first ? Overlap::kPart
                                           : Overlap::kNone;
    };
    if (parts_.empty()) return lies(within.first, within.count);
    first = first / kPageBytes * kPageBytes;
    last = (last + kPageBytes - 1) / kPageBytes * kPageBytes;
    Overlap all = Overlap::kInside;
    bool some = false;
    std::uint64_t mapped = 0;
    for (const auto &p : parts_) {
        const Overlap o = file == kNoFile || file == p.file ? lies(p.in_file, p.sectors) : Overlap::kNone;
        some = some || o != Overlap::kNone;
        all = o == Overlap::kInside ? all : Overlap::kPart;
        mapped += p.sectors;
    }
    return !some ? Overlap::kNone : mapped < within.count ? Overlap::kPart : all;
}

// Ops whose bytes in flight are the bio's. One whose bytes have all been queued already has no claim, unless nobody
// else has.
void Linker::find_in_flight(const Bio &bio, const Sectors &within, BioLink &link) {
    std::uint64_t found = 0, served = 0;
    std::uint32_t served_candidates = 0;
    for (auto ref : stitcher_.io_windows()) {
        const Op *op = stitcher_.ops().find(ref);
        if (!op || !right_way(*op, bio) || overlap(*op, within) != Overlap::kInside) continue;
        if (parts_.empty() && !target_of(*op).may_be_on(within.dev)) continue;
        const bool done = op->data_bytes >= static_cast<std::uint64_t>(op->length_bytes);
        ++(done ? served_candidates : link.candidates);
        std::uint64_t &oldest = done ? served : found;
        if (oldest == 0 || ref < oldest) oldest = ref;  // first in, first out
    }
    if (found == 0) {
        found = served;
        link.candidates = served_candidates;
        link.ambiguous = served != 0;
    }
    (parts_.empty() ? link.by_sector : link.by_extent) = found;
}

void Linker::choose(const BlockEvent &ev, const Bio &bio, const Sectors &within, Op *thread_op, BioLink &link) {
    const std::uint64_t placed = link.by_extent != 0 ? link.by_extent : link.by_sector;
    const std::uint32_t place_rule = link.by_extent != 0 ? rule::kExtent : rule::kSector;
    if (!thread_op) {
        // What a thread queues while it has a batch open is the batch's: a member may be rewriting the same sectors
        // already.
        if (ev.tid > 0) link.batch = stitcher_.current_batch(link.host, ev.tid);
        if (link.batch || link.pages_owned) return;  // whoever wrote the pages last
        link.chosen = placed;
        link.dirtied = link.by_extent != 0 && is_write(bio);
        link.rules = placed != 0 ? place_rule : 0;
        link.ambiguous =
            link.ambiguous || link.candidates > 1 || (link.by_extent != 0 && file_of(link.by_extent) == kNoFile);
        if (Op *op = parts_.empty() ? stitcher_.ops().find(placed) : nullptr)
            ++target_of(*op).device(within.dev).placed;
        return;
    }
    link.chosen = op_ref(*thread_op);
    link.rules = rule::kThread;
    link.ambiguous = false;
    link.doubtful = !lost_.empty() && lost_between(thread_op->begin_ns, ev.ts_ns);
    target_of(*thread_op).device(within.dev);  // its threads use it
    const bool own_data = is_data(bio) && !link.sync && (bio.rwbs & rwbs::kRahead) == 0;
    const bool elsewhere = own_data && outside(bio, within, *thread_op, link);
    const bool other = placed != 0 && placed != link.chosen && link.candidates == 1 && !link.pages_owned && !link.sync;
    if (elsewhere) ++counts_.elsewhere;
    if (elsewhere || (other && !(thread_op->io_open && overlap(*thread_op, within) != Overlap::kNone))) {
        // The op whose bytes are in flight there is right. That the thread works for an op that has none there, or none
        // in flight, explains nothing.
        link.chosen = other ? placed : 0;
        link.rules = other ? place_rule : 0;
        link.dirtied = other && link.by_extent != 0 && is_write(bio);
        const bool decided = thread_op->io_open && thread_op->has_length;
        link.ambiguous = !(other && link.by_extent != 0 && decided && file_of(placed) != kNoFile);
        return;
    }
    if (placed == link.chosen) link.rules |= place_rule;
    else if (other) link.ambiguous = true;  // each rule has its own answer
    link.waited_for = thread_op->io_open && (own_data || (is_flush(bio) && !link.sync));
}

// Made of a bio that the rules were asked about: by remap all of its work, by split that of its sectors.
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
        SharedWork &work = shared(link);
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
    if (link.sync || link.journal) sync_bios_.push_back(bio.id);
    return bio.owner;
}

void Linker::count(const BioLink &link) {
    const std::uint64_t placed = link.by_extent != 0 ? link.by_extent : link.by_sector;
    // With several ops on the same sectors those rules have no answer of their own.
    if (link.batch || link.journal) ++counts_.batch;
    else if (link.shared && !link.shared->pages.empty()) ++counts_.page;
    else if (link.candidates > 1) ++counts_.ambiguous;
    else if (link.by_thread != 0 && placed != 0) ++(link.by_thread == placed ? counts_.agree : counts_.differ);
    else if (link.by_thread != 0) ++counts_.thread_only;
    else if (placed != 0) ++counts_.sector_only;
    else ++counts_.neither;
    if (link.by_extent != 0) ++counts_.extents;
}

// What an op does for all whose records it reaches is the batch's, its own part included.
bool Linker::works_for_all(std::uint32_t host, std::int64_t tid) {
    const auto batch = tid > 0 ? stitcher_.current_batch(host, tid) : nullptr;
    return batch && (batch->opened_in_need || batch->reaches);
}

// Of the bio at hand.
bool Linker::pages_have_owner() const {
    for (const auto &p : parts_)
        for (std::uint64_t page = p.in_file / kPageSectors; page * kPageSectors < p.in_file + p.sectors; ++page) {
            bool any;
            if (pages_.owner(p.file, page, any).op != 0) return true;
        }
    return false;
}

Owner Linker::bio_queued(const BlockEvent &ev, const Bio &bio, std::uint32_t host) {
    BioLink &link = links_[bio.id];
    recent_id_ = bio.id;
    recent_ = &link;
    link.queue_ns = bio.since_ns;
    link.host = host;
    if (bio.owner) return inherit(bio, link);
    const Sectors run{bio.dev, bio.sector, bio.nr_sectors}, within = within_partition(ev, run);
    if (ev.tid > 0 && !syncs_.open().empty()) link.sync = syncs_.of_thread(host, ev.tid);
    Op *thread_op = link.sync ? stitcher_.ops().find(link.sync->op) : stitcher_.op_of_bio(host, ev, bio);
    if (thread_op && works_for_all(host, ev.tid)) thread_op = nullptr;
    if (thread_op) link.by_thread = op_ref(*thread_op);
    parts_.clear();
    if (is_data(bio)) {
        if (!maps_.empty()) maps_.find(run, within, parts_);
        if (!parts_.empty() || !link.sync) find_in_flight(bio, within, link);
        link.pages_owned = is_write(bio) && !pages_.empty() && pages_have_owner();
    }
    choose(ev, bio, within, thread_op, link);
    if (bio.kind == IoKind::kRead && (bio.rwbs & rwbs::kRahead) != 0) {
        link.read_ahead = true;
        link.read_ahead_dev = within.dev;
        link.read_ahead_shift = run.first - within.first;
    }
    if (!parts_.empty() && is_write(bio)) share_pages(bio, within, link);
    share_sync(bio, within, link);
    const bool of_pages = link.shared && !link.shared->pages.empty();
    if (link.chosen == 0 && !link.batch && !link.journal && !link.others && !of_pages)
        if (Op *op = stitcher_.own_op(host, ev, bio)) {
            link.chosen = link.by_thread = op_ref(*op);
            link.rules = rule::kThread;
        }
    count(link);

    Owner owner;
    if (Op *op = stitcher_.ops().find(link.chosen)) {
        ++op->bios;
        ++op->bios_on_their_way;
        if (is_data(bio) && op->io_open && right_way(*op, bio)) {
            if (op->data_bytes == 0) op->data_dev = within.dev;
            op->data_bytes += std::uint64_t{bio.nr_sectors} * 512;
            if (link.read_ahead) op->read_ahead_bytes += std::uint64_t{bio.nr_sectors} * 512;
        }
        owner.op = link.chosen;
    } else if (of_pages) {
        owner.op = link.shared->pages.front().op;
    } else if (link.journal) {
        owner.op = link.shared->syncs.front()->op;
    }
    if (link.chosen != 0 && !link.others && link.own_bytes == 0) link.own_bytes = std::uint64_t{bio.nr_sectors} * 512;
    const Sync *sync = link.journal ? link.shared->syncs.front().get() : link.others ? link.sync.get() : nullptr;
    owner.batch = link.batch ? link.batch->serial + 1 : sync ? sync->batch->serial + 1 : 0;
    return owner;
}

void Linker::forget(std::uint64_t bio_id) {
    if (BioLink *link = find_link(bio_id)) links_.erase_found(link);
    recent_id_ = 0;
    recent_ = nullptr;
    if (sync_bios_.empty()) return;
    if (auto it = std::find(sync_bios_.begin(), sync_bios_.end(), bio_id); it != sync_bios_.end()) sync_bios_.erase(it);
}

}  // namespace opline
