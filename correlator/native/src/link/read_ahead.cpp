// SPDX-License-Identifier: MIT
// Of a read-ahead: the op whose thread queued it does not wait for it, and whoever reads those bytes meanwhile does.
#include <algorithm>

#include "link/linker.hpp"

namespace opline {

// Of the bytes that the op has in flight, how many lie in those sectors (and parts_, where they are of a mapped file).
std::uint64_t Linker::bytes_in(const Op &op, const Sectors &within) {
    if (!op.has_offset || !op.has_length || op.length_bytes <= 0 || op.offset_bytes < 0) return 0;
    const auto first = static_cast<std::uint64_t>(op.offset_bytes),
               past = first + static_cast<std::uint64_t>(op.length_bytes);
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

// Its pages are locked until it is done (mm/filemap.c, filemap_update_page()): an op that reads some of them, and has
// not queued all of its bytes itself, can't have ended before.
void Linker::wait_for_read_ahead(BioLink &link, const Request &r) {
    if (r.complete_ns == kNoTime || r.nr_sectors == 0 || r.sector == kNoSector) return;
    const Sectors run{r.dev, r.sector, r.nr_sectors},
        within{link.read_ahead_dev, r.sector - link.read_ahead_shift, r.nr_sectors};
    parts_.clear();
    if (!maps_.empty()) maps_.find(run, within, parts_);
    for (const std::uint64_t ref : stitcher_.io_windows()) {
        const Op *op = stitcher_.ops().find(ref);
        if (!op || ref == link.chosen || direction_of(*op) != Direction::kRead || op->begin_ns >= r.complete_ns ||
            op->data_bytes - op->read_ahead_bytes >= static_cast<std::uint64_t>(op->length_bytes))
            continue;
        const std::uint64_t bytes = bytes_in(*op, within);
        if (bytes == 0) continue;
        served_.push_back(ref);
        wait_for(ref, link.queue_ns, op->begin_ns);
        shared(link).readers.emplace_back(ref, bytes);
        link.others = true;
    }
}

}  // namespace opline
