// SPDX-License-Identifier: MIT
#include "link/place_rules.hpp"

#include <algorithm>

namespace opline {

Target &PlaceRules::target_of(const Op &op) {
    Target &t = targets_.of(op.target);
    if (!t.resolved) {
        t.resolved = true;
        const std::uint32_t host = op.target_host;
        t.file = l_.maps.sole(host);
        if (!op.file_name.empty()) t.file = l_.maps.by_path(host, op.file_name);
        if (op.inode != 0 && !l_.maps.empty())
            t.file = l_.maps.by_inode(host, op.file_dev, op.inode, op.file.generation);
        t.stacked = op.inode != 0 && t.file == kNoMap && !l_.maps.any_of(host, op.file_dev);
    }
    return t;
}

// How the op's bytes in flight overlap the bio's bytes. For a file, whole pages reach the disk.
Overlap PlaceRules::overlap(const Op &op, std::uint32_t file, const Sectors &within) {
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

// Ops with the bio's bytes in flight. An op whose bytes have all been queued has no claim, unless no other op has.
void PlaceRules::find_in_flight(const Bio &bio, const Sectors &within, BioLink &link) {
    std::uint64_t found = 0, served = 0;
    std::uint32_t served_candidates = 0;
    for (auto ref : l_.locator.io_windows()) {
        const Op *op = l_.locator.find(ref);
        if (!op || !directions_.right_way(*op, bio) || overlap(*op, within) != Overlap::kInside) continue;
        if (parts_.empty() && !target_of(*op).may_be_on(within.dev)) continue;
        if (!l_.processes.in_flight_for(*op, link.queuer)) {
            link.other_process = true;
            continue;
        }
        const bool done = op->data_bytes >= static_cast<std::uint64_t>(op->length_bytes);
        ++(done ? served_candidates : link.candidates);
        link.own_place = link.own_place || (!done && ref == link.by_thread);
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

std::uint64_t PlaceRules::bytes_in_flight(const Op &op) {
    const auto first = static_cast<std::uint64_t>(op.offset_bytes),
               last = first + static_cast<std::uint64_t>(op.length_bytes);
    return (last + kPageBytes - 1) / kPageBytes * kPageBytes - first / kPageBytes * kPageBytes;
}

void PlaceRules::learn_amount(Op &op) {
    if (op.data_bytes == 0 || op.io.votes & vote::kMore) return;
    op.io.votes |= vote::kMore;
    ++target_of(op).exact;
}

// The bio cannot be the op's bio, although the thread works for the op.
bool PlaceRules::outside(const Bio &bio, const Sectors &within, Op &op, BioLink &link) {
    Target &target = target_of(op);
    TargetDevice &device = target.device(within.dev);
    auto once = [&](std::uint8_t what, std::uint64_t &counter) {
        if (op.io.votes & what) return;
        op.io.votes |= what;
        ++counter;
    };
    const bool lost = link.doubtful, bytes = op.has_offset && op.has_length && op.length_bytes > 0;
    const bool own_way = directions_.right_way(op, bio);  // a copy reads and writes at different places
    // An overlay's thread queues I/O at the same place of a lower file.
    const std::uint32_t file = target.stacked ? kNoFile : target.file;
    const bool inside = bytes && overlap(op, file, within) != Overlap::kNone;
    if (!lost && !l_.io_points.empty())
        op.io_open ? once(vote::kDuring, device.during) : once(vote::kBesides, device.besides);
    if (!lost && op.io_open && parts_.empty() && own_way)
        inside ? once(vote::kIn, device.in) : once(vote::kOut, device.out);
    // A file system zeroes the surroundings of newly allocated bytes (ext4_ext_zeroout() of fs/ext4/extents.c).
    if (bio.kind == IoKind::kWriteZeroes && !target.raw(within.dev)) return false;
    if (bytes && !inside) {
        if (target.raw(within.dev)) return true;
        if (op.io_open && !parts_.empty() && own_way) return true;
        if (op.io_open && lost && !target.not_raw(within.dev)) return true;
    }
    if (op.io_open) {
        const IoKind own = directions_.direction_of(op) == Direction::kRead ? IoKind::kRead : IoKind::kWrite;
        if (!bytes || !parts_.empty() || directions_.direction_of(op) == Direction::kUnknown || bio.kind != own ||
            op.data_bytes < bytes_in_flight(op))
            return false;
        once(vote::kMore, target.more);  // all bytes have been queued
        // The second leg of a mirror: on another device while the first leg is in flight. An awaited bio is done when
        // the thread begins its next op.
        if (op.bios_on_their_way > 0 && op.data_dev != within.dev) return false;
        return !target.amplifies();
    }
    if (!target.only_in_flight(within.dev)) return false;
    if (op.had_window) return true;
    link.ambiguous = true;  // the begin of the op's I/O is lost, or of another op's I/O
    return false;
}

// The number of the op's bytes in flight in the sectors (and in parts_, for a mapped file). An op of unknown length
// counts with its first byte.
std::uint64_t PlaceRules::bytes_in(const Op &op, const Sectors &within) {
    if (!op.has_offset || op.offset_bytes < 0 || (op.has_length && op.length_bytes <= 0)) return 0;
    const auto first = static_cast<std::uint64_t>(op.offset_bytes),
               past = first + (op.has_length ? static_cast<std::uint64_t>(op.length_bytes) : 1);
    auto common = [&](std::uint64_t sector, std::uint64_t count) {
        const std::uint64_t from = std::max(first, sector * 512), to = std::min(past, (sector + count) * 512);
        return to > from ? to - from : 0;
    };
    const Target &target = target_of(op);
    if (parts_.empty()) return target.may_be_on(within.dev) ? common(within.first, within.count) : 0;
    std::uint64_t bytes = 0;
    for (const auto &p : parts_)
        if (target.file == kNoFile || target.file == p.file) bytes += common(p.in_file, p.sectors);
    return bytes;
}

}  // namespace opline
