// SPDX-License-Identifier: MIT
// What holds for every link, whatever rule made it. A bio outside the bytes of the op that its thread seems to work for
// is another op's: events of the thread are lost. A request that comes, or goes on, after the op's end is another
// bio's: a step of it was lost. Nothing is linked then, and it is counted.
#include <algorithm>

#include "link/linker.hpp"

namespace opline {
namespace {

constexpr std::size_t kEndsKept = 1u << 16;

}  // namespace

std::uint64_t Linker::bytes_in_flight(const Op &op) {
    const auto first = static_cast<std::uint64_t>(op.offset_bytes),
               last = first + static_cast<std::uint64_t>(op.length_bytes);
    return (last + kPageBytes - 1) / kPageBytes * kPageBytes - first / kPageBytes * kPageBytes;
}

void Linker::learn_amount(Op &op) {
    if (op.data_bytes == 0 || op.io.votes & vote::kMore) return;
    op.io.votes |= vote::kMore;
    ++target_of(op).exact;
}

// The bio can't be of the op, though its thread works for it.
bool Linker::outside(const Bio &bio, const Sectors &within, Op &op, BioLink &link) {
    Target &target = target_of(op);
    TargetDevice &device = target.device(within.dev);
    auto once = [&](std::uint8_t what, std::uint64_t &counter) {
        if (op.io.votes & what) return;
        op.io.votes |= what;
        ++counter;
    };
    const bool lost = link.doubtful, bytes = op.has_offset && op.has_length && op.length_bytes > 0;
    const bool own_way = right_way(op, bio);  // a copy reads what it writes elsewhere
    // What its own thread queues at the same place of a file below is what an overlay passes on.
    const std::uint32_t file = target.stacked ? kNoFile : target.file;
    const bool inside = bytes && overlap(op, file, within) != Overlap::kNone;
    if (!lost && !io_points_.empty())
        op.io_open ? once(vote::kDuring, device.during) : once(vote::kBesides, device.besides);
    if (!lost && op.io_open && parts_.empty() && own_way)
        inside ? once(vote::kIn, device.in) : once(vote::kOut, device.out);
    // A file system zeroes what lies around the bytes that it makes room for (ext4_ext_zeroout() of fs/ext4/extents.c).
    if (bio.kind == IoKind::kWriteZeroes && !target.raw(within.dev)) return false;
    if (bytes && !inside) {
        if (target.raw(within.dev)) return true;
        if (op.io_open && !parts_.empty() && own_way) return true;
        if (op.io_open && lost && !target.not_raw(within.dev)) return true;
    }
    if (op.io_open) {
        const IoKind own = direction_of(op) == Direction::kRead ? IoKind::kRead : IoKind::kWrite;
        if (!bytes || !parts_.empty() || direction_of(op) == Direction::kUnknown || bio.kind != own ||
            op.data_bytes < bytes_in_flight(op))
            return false;
        once(vote::kMore, target.more);  // all of it has been queued
        // A mirror's second leg: on another device while the first is on its way. What a thread waits for is done when
        // it begins its next op.
        if (op.bios_on_their_way > 0 && op.data_dev != within.dev) return false;
        return !target.amplifies();
    }
    if (!target.only_in_flight(within.dev)) return false;
    if (op.had_window) return true;
    link.ambiguous = true;  // the begin of its I/O is lost, or that of another op's
    return false;
}

std::int64_t Linker::end_of(std::uint64_t ref) const {
    if (const Op *op = stitcher_.ops().find(ref))
        return op->state == OpState::kEnded && op->hard ? op->end_ns : kNoTime;  // a soft end can move on
    const std::int64_t *known = ends_.find(ref);
    return known ? *known : 0;  // long ago
}

// Of a link whose request has these steps: they can't be the op's.
bool Linker::impossible(const BioLink &link, std::int64_t getrq_ns, std::int64_t complete_ns) const {
    if (const Op *op = stitcher_.ops().find(link.chosen);
        op && link.queue_ns != kNoTime && link.queue_ns < op->begin_ns && !link.sync)
        return true;
    const std::int64_t end_ns = end_of(link.chosen);
    if (end_ns == kNoTime) return false;
    if (getrq_ns != kNoTime && getrq_ns > end_ns) return true;
    return link.waited_for && complete_ns != kNoTime && complete_ns > end_ns;
}

std::int64_t Linker::waiter_ended(const BioLink &link) const {
    if (link.sync) return link.sync->batch->end_ns;
    if (link.chosen != 0) return link.waited_for ? end_of(link.chosen) : kNoTime;
    if (!link.batch) return kNoTime;
    const BatchWaits *waits = batch_waits_.find(link.batch->space);
    return waits && waits->nearly_always() ? link.batch->end_ns : kNoTime;
}

std::int64_t Linker::waiter_ended(const Request &r) const {
    std::int64_t first_ns = kNoTime;
    for (auto id : r.bios) {
        const BioLink *link = link_of(id);
        const std::int64_t end_ns = link ? waiter_ended(*link) : kNoTime;
        if (end_ns != kNoTime && (first_ns == kNoTime || end_ns < first_ns)) first_ns = end_ns;
    }
    return first_ns;
}

// Its bytes were in flight when another thread wrote the pages, and it did not wait for them: they are written back for
// it.
void Linker::postpone(BioLink &link) {
    link.shared->pages.push_back({link.chosen, link.own_bytes, link.queue_ns, 0, 0, link.ambiguous});
    link.chosen = 0;
    link.rules = 0;
    link.own_bytes = 0;
}

void Linker::check(BioLink &link, std::int64_t getrq_ns, std::int64_t complete_ns) {
    if (link.chosen == 0) return;
    if (link.dirtied && complete_ns != kNoTime) {
        const Op *op = stitcher_.ops().find(link.chosen);
        if (!op || !op->io_open) return postpone(link);
    }
    if (!impossible(link, getrq_ns, complete_ns)) return;
    ++counts_.refused;
    link.chosen = 0;
    link.rules = 0;
}

void Linker::settled(const Op &op) {
    if (op.bios == 0) return;
    if (ends_.size() >= kEndsKept) ends_.clear();  // of what is so old nothing is linked
    ends_.put(op_ref(op), op.complete() ? op.end_ns : kNoTime);
}

// What its thread queued is done when a sync returns: of what is still open the completion was lost.
std::shared_ptr<Sync> Linker::sync_ended(Op &op, std::int64_t at_ns) {
    std::shared_ptr<Sync> sync = syncs_.end(op, at_ns);
    if (!sync || at_ns == kNoTime) return sync;
    drop_sync_bios([&](const BioLink &link) { return link.sync == sync; });
    return sync;
}

}  // namespace opline
