// SPDX-License-Identifier: MIT
#include "link/page_shares.hpp"

#include <algorithm>

namespace opline {

// Of the bio at hand.
bool PageShares::pages_have_owner() const {
    for (const auto &p : places_.parts())
        for (std::uint64_t page = p.in_file / kPageSectors; page * kPageSectors < p.in_file + p.sectors; ++page) {
            bool any;
            if (pages_.owner(p.file, page, any).op != 0) return true;
        }
    return false;
}

// The first op with the page in flight, and the number of such ops.
Op *PageShares::writes_page(const Bio &bio, std::uint32_t host, std::uint32_t file, std::uint64_t page,
                            std::uint32_t &writers) {
    Op *first = nullptr;
    for (auto ref : l_.locator.io_windows()) {
        Op *op = l_.locator.find(ref);
        if (!op || op->window_host != host || op->length_bytes <= 0 || op->offset_bytes < 0 ||
            !directions_.right_way(*op, bio))
            continue;
        const auto begin = static_cast<std::uint64_t>(op->offset_bytes),
                   end = begin + static_cast<std::uint64_t>(op->length_bytes);
        if (begin >= (page + 1) * kPageBytes || end <= page * kPageBytes ||
            op->data_bytes >= places_.bytes_in_flight(*op))
            continue;
        if (const std::uint32_t its = places_.target_of(*op).file; its != kNoFile && its != file) continue;
        ++writers;
        if (!first || op->serial < first->serial) first = op;
    }
    return first;
}

// Writes to pages of mapped files: a page belongs to its last writer; a page in flight belongs to the op with the page
// in flight.
void PageShares::share_pages(const Bio &bio, const Sectors &within, BioLink &link) {
    Op *own = l_.locator.find(link.chosen);
    SharedWork &work = shared_work(link);
    work.file = places_.parts().front().file;
    bool all_owned = true;
    link.own_bytes = 0;
    for (const auto &part : places_.parts()) {
        link.doubtful = link.doubtful || l_.maps.changed(part.file);
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
            // A write in flight made the page dirty, unless the page was dirty before; else nothing proves a dirty
            // page.
            std::uint32_t writers = 0;
            Op *writer = writes_page(bio, link.queuer.host, part.file, page, writers);
            if (owner.op == 0 && !writer) {
                all_owned = false;
                continue;
            }
            if (owner.op == 0) {
                owner = {op_ref(*writer), bio.queue_ns, 0};  // by then at the latest
                writer->data_bytes += bytes;
                any = places_.file_of(owner.op) == kNoFile;
            }
            const bool ambiguous = (any && l_.maps.size() > 1 && !link.sync) || l_.maps.doubtful(part.file) ||
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
    if (all_owned) l_.maps.seen(work.file, within.dev);
    link.others = !work.pages.empty();
}

void PageShares::wrote(const Op &op, std::int64_t at_ns) {
    // Pages queued while the op was in flight are no longer only in the page cache.
    if (l_.maps.empty() || op.data_bytes >= static_cast<std::uint64_t>(op.length_bytes)) return;
    const std::uint32_t file = places_.target_of(op).file;
    const auto first = static_cast<std::uint64_t>(op.offset_bytes) / kPageBytes;
    const auto last =
        (static_cast<std::uint64_t>(op.offset_bytes) + static_cast<std::uint64_t>(op.length_bytes) - 1) / kPageBytes;
    for (std::uint64_t page = first; page <= std::min(last, first + PageOwners::kLimit); ++page)
        if (l_.maps.has(file, page * kPageSectors)) pages_.wrote(file, page, op_ref(op), at_ns);
}

}  // namespace opline
