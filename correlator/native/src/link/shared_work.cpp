// SPDX-License-Identifier: MIT
// Bios that are not one op's alone: written back for whoever wrote their pages last, or written by a sync and its
// journal.
#include <algorithm>

#include "link/linker.hpp"

namespace opline {
namespace {

// With `async_commit` it has neither flag.
bool commits(const Bio &bio) { return (bio.rwbs & (rwbs::kPreflush | rwbs::kFua)) != 0; }

bool begins(const std::string &text, std::string_view with) { return text.compare(0, with.size(), with) == 0; }

}  // namespace

// The op that has the page in flight, the first if there are more, and how many have.
Op *Linker::writes_page(const Bio &bio, std::uint32_t file, std::uint64_t page, std::uint32_t &writers) {
    Op *first = nullptr;
    for (auto ref : stitcher_.io_windows()) {
        Op *op = stitcher_.ops().find(ref);
        if (!op || op->length_bytes <= 0 || op->offset_bytes < 0 || !right_way(*op, bio)) continue;
        const auto begin = static_cast<std::uint64_t>(op->offset_bytes),
                   end = begin + static_cast<std::uint64_t>(op->length_bytes);
        if (begin >= (page + 1) * kPageBytes || end <= page * kPageBytes || op->data_bytes >= bytes_in_flight(*op))
            continue;
        if (const std::uint32_t its = target_of(*op).file; its != kNoFile && its != file) continue;
        ++writers;
        if (!first || op->serial < first->serial) first = op;
    }
    return first;
}

// Writes to pages of mapped files: each is its last writer's, those in flight of the op that has them in flight.
void Linker::share_pages(const Bio &bio, const Sectors &within, BioLink &link) {
    Op *own = stitcher_.ops().find(link.chosen);
    SharedWork &work = shared(link);
    work.file = parts_.front().file;
    bool all_owned = true;
    link.own_bytes = 0;
    for (const auto &part : parts_) {
        link.doubtful = link.doubtful || maps_.changed(part.file);
        for (std::uint64_t at = part.in_file, end = part.in_file + part.sectors; at < end;) {
            const std::uint64_t page = at / kPageSectors, next = std::min(end, (page + 1) * kPageSectors);
            const std::uint64_t first = bio.sector + part.in_bio + (at - part.in_file), bytes = (next - at) * 512;
            bool any = false;
            PageOwner owner = pages_.owner(part.file, page, any);
            pages_.clean(part.file, page);
            const bool in_flight =
                own && own->io_open &&
                static_cast<std::uint64_t>(own->offset_bytes)<(page + 1) * kPageBytes &&static_cast<std::uint64_t>(
                                                                               own->offset_bytes + own->length_bytes)>
                        page * kPageBytes;
            at = next;
            if (in_flight || (owner.op != 0 && owner.op == link.chosen)) {
                link.own_bytes += bytes;
                if (!in_flight) link.rules |= rule::kPage;
                continue;
            }
            // Who has the page in flight has made it dirty, if nobody had before; else nothing says whether already.
            std::uint32_t writers = 0;
            Op *writer = writes_page(bio, part.file, page, writers);
            if (owner.op == 0 && !writer) {
                all_owned = false;
                continue;
            }
            if (owner.op == 0) {
                owner = {op_ref(*writer), bio.queue_ns, 0};  // by then at the latest
                writer->data_bytes += bytes;
                any = file_of(owner.op) == kNoFile;
            }
            const bool ambiguous = (any && maps_.size() > 1 && !link.sync) || maps_.doubtful(part.file) ||
                                   writers > (owner.turn == 0 ? 1 : 0);
            auto &pages = work.pages;
            if (!pages.empty() && pages.back().op == owner.op && pages.back().last == first &&
                pages.back().ambiguous == ambiguous) {
                pages.back().last = first + bytes / 512;
                pages.back().bytes += bytes;
            } else {
                pages.push_back({owner.op, bytes, owner.written_ns, first, first + bytes / 512, ambiguous});
            }
        }
    }
    if (all_owned) maps_.seen(work.file, within.dev);
    link.others = !work.pages.empty();
}

bool Linker::is_journal(const Bio &bio) {
    // ext4's jbd2 and XFS's log: writes with META and SYNC from a kernel thread. Flushes of their own come with those.
    if (bio.kind != IoKind::kWrite || (bio.rwbs & rwbs::kMeta) == 0 || (bio.rwbs & rwbs::kSync) == 0) return false;
    auto [known, made] = kernel_comms_.insert(bio.comm);
    if (made) {
        const std::string &comm = strings_.at(bio.comm);
        *known = begins(comm, "jbd2/") || begins(comm, "kworker/") || begins(comm, "xfsaild/");
    }
    return *known;
}

// jbd2 waits for what it has written before it queues a commit record, and for that before it goes on
// (fs/jbd2/commit.c). What it should have waited for and is open: its completion was lost.
void Linker::supersede_commits(const Bio &bio) {
    if (sync_bios_.empty() || bio.tid <= 0 || !begins(strings_.at(bio.comm), "jbd2/")) return;
    drop_sync_bios([&](const BioLink &link) {
        return link.journal && link.journal_tid == bio.tid && (link.commit || commits(bio));
    });
}

void Linker::share_sync(const Bio &bio, const Sectors &within, BioLink &link) {
    supersede_commits(bio);
    if (link.sync) {
        const bool mapped = is_write(bio) && !parts_.empty();
        link.others = link.others || (!mapped && link.sync->batch->members > 1);
        if (link.others) link.rules |= rule::kBatch;
        // Without a map it may be the data of any op whose write came before: those that wait for theirs wait for it.
        if (!mapped && is_data(bio))
            for (const auto &s : syncs_.open()) {
                const Op *op = s != link.sync ? stitcher_.ops().find(s->op) : nullptr;
                if (op && link.sync->covers(*op)) shared(link).syncs.push_back(s);
            }
        sync_bios_.push_back(bio.id);
    } else if (link.chosen == 0 && !link.batch && !syncs_.open().empty() && is_journal(bio)) {
        for (const auto &s : syncs_.open()) {
            const Op *op = stitcher_.ops().find(s->op);
            if (!op) continue;
            const Target &target = target_of(*op);
            if (target.devices.empty() || target.known(within.dev)) shared(link).syncs.push_back(s);
        }
        if (!link.shared) return;
        link.journal = link.others = true;
        link.journal_tid = bio.tid;
        link.commit = commits(bio);
        sync_bios_.push_back(bio.id);
    }
}

void Linker::wrote(Op &op, std::int64_t at_ns) {
    learn_amount(op);
    if (direction_of(op) != Direction::kWrite || op.length_bytes <= 0 || op.offset_bytes < 0) return;
    syncs_.wrote(op, has_syncs_);
    // What was queued while it was in flight is not in the page cache.
    if (maps_.empty() || op.data_bytes >= static_cast<std::uint64_t>(op.length_bytes)) return;
    const std::uint32_t file = target_of(op).file;
    const auto first = static_cast<std::uint64_t>(op.offset_bytes) / kPageBytes;
    const auto last =
        (static_cast<std::uint64_t>(op.offset_bytes) + static_cast<std::uint64_t>(op.length_bytes) - 1) / kPageBytes;
    for (std::uint64_t page = first; page <= std::min(last, first + PageOwners::kLimit); ++page)
        if (maps_.has(file, page * kPageSectors)) pages_.wrote(file, page, op_ref(op), at_ns);
}

void Linker::sync_begun(Op &op, std::int64_t tid, std::int64_t at_ns) {
    const std::shared_ptr<Sync> sync = syncs_.begin(op, tid, at_ns, stitcher_.next_batch(), sync_space_);
    // What is on its way already is waited for as well.
    for (auto id : sync_bios_) {
        BioLink *link = links_.find(id);
        if (!link || !(link->journal ||
                       (link->sync && link->sync->covers(op) && (!link->shared || link->shared->file == kNoFile))))
            continue;
        shared(*link).syncs.push_back(sync);
    }
}

}  // namespace opline
