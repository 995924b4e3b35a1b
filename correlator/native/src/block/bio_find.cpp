// SPDX-License-Identifier: MIT
// Which open bio an event is about.
#include "block/bios.hpp"

namespace opline::block_model {

// A bio without a request at the event's place. exact: of this length; else also a longer bio, to be cut.
Found Bios::open_at(const BlockEvent &e, std::uint32_t nr_sectors, bool exact) {
    Found found;
    if (const std::uint64_t pointer = m_.bio_of(e)) {
        if (Index *known = by_bio_.find(pointer)) {
            const BioRec &rec = bios_[*known];
            const bool waits = rec.request == kNil && !rec.finished && !rec.mapped;
            if (waits && rec.bio.dev == e.dev && rec.bio.sector == e.sector) return {*known, false, true};
        }
    }
    // G, M and F come in the thread that queued the bio, before the thread queues its next bio. So an older bio of the
    // same thread, place and length has lost its G, M or F.
    Index own = kNil, other = kNil;
    unsigned others = 0, seen = 0;
    for (Index i = places_.first({e.dev, e.sector}); i != kNil && seen < kChainLimit; ++seen) {
        const Index at = i;
        const BioRec &rec = bios_[at];
        i = rec.place.next;
        if (rec.mapped || rec.finished || !same_direction(rec.bio.rwbs, e.rwbs)) continue;
        if (exact ? rec.bio.nr_sectors != nr_sectors : rec.bio.nr_sectors < nr_sectors) continue;
        if (m_.bio_of(e) && rec.bio.pointer && rec.bio.pointer != e.bio) continue;
        if (rec.bio.tid == e.tid && e.tid >= 0) {
            if (own != kNil && exact && nr_sectors > 0) {
                evidence_.missed(e.dev, bios_[own].bio.queue_ns != kNoTime ? bios_[own].bio.queue_ns : e.ts_ns,
                                 e.ts_ns);
                ++m_.counts.lost_bios;
                close(own);
            }
            if (own == kNil || exact) own = at;
        } else {
            if (other == kNil) other = at;
            ++others;
        }
    }
    found.index = own != kNil ? own : other;
    // A bio of another thread: the Q of this thread's bio may be lost.
    const bool by_another = other != kNil && e.tid >= 0 && bios_[other].bio.tid >= 0;
    found.ambiguous = own == kNil && (others > 1 || by_another);
    if (found.ambiguous)
        for (Index i = places_.first({e.dev, e.sector}); i != kNil; i = bios_[i].place.next)
            if (!bios_[i].mapped && bios_[i].bio.nr_sectors == nr_sectors) bios_[i].ambiguous = true;
    return found;
}

// The bio of the event's request (or merge). A longer bio is cut, as its split event is missing. A bio remapped here
// without a Q (md) is made now.
Found Bios::for_request(const BlockEvent &e) {
    Found found = open_at(e, e.nr_sectors, true);
    if (found && bios_[found.index].bio.nr_sectors == e.nr_sectors) return found;
    if (!found && e.nr_sectors > 0) found = open_at(e, e.nr_sectors, false);
    if (found) {
        const Bio &b = bios_[found.index].bio;
        if (e.nr_sectors > 0 && b.nr_sectors > e.nr_sectors) {
            const std::uint64_t pointer = b.pointer;
            const Index rest = cut(e, found.index, b.sector + e.nr_sectors);
            if (m_.pointers && e.bio && pointer == e.bio) {  // found by pointer: the front part keeps the pointer
                bios_[rest].bio.pointer = 0;
                set_pointer(found.index, pointer);
            }
        }
        return found;
    }
    if (const Index way = remap_to(e); way != kNil && e.nr_sectors > 0) {
        found.index = make(e, e.sector, e.nr_sectors, remaps_[way].parent, kNil);
        found.ambiguous = remaps_[way].ambiguous;
        set_pointer(found.index, e.bio);
        drop_remap(way);
    }
    return found;
}

// The sector of the first bio behind the event's sector and within the event's length. If the event claims more sectors
// than bios are open, the bios are searched instead (a damaged event can claim 2^32 sectors).
std::uint64_t Bios::next_behind(const BlockEvent &e) const {
    const auto fits = [&](Index i, std::uint64_t behind) {
        if (bios_[i].mapped || !same_direction(bios_[i].bio.rwbs, e.rwbs)) return false;
        return bios_[i].bio.nr_sectors > 0 && bios_[i].bio.nr_sectors <= e.nr_sectors - behind;
    };
    if (e.nr_sectors <= bios_.live()) {
        for (std::uint32_t n = 1; n < e.nr_sectors; ++n)
            if (const Index i = places_.first({e.dev, e.sector + n}); i != kNil && fits(i, n)) return e.sector + n;
        return kNoSector;
    }
    std::uint64_t nearest = e.nr_sectors;
    for (Index i = age_.head; i != kNil; i = bios_[i].age.next) {
        const BioRec &rec = bios_[i];
        // more than any length if the bio begins before the event
        const std::uint64_t behind = rec.bio.sector - e.sector;
        if (!rec.open_place || rec.bio.dev != e.dev || behind == 0 || behind >= nearest || !fits(i, behind)) continue;
        if (places_.first({e.dev, rec.bio.sector}) == i) nearest = behind;
    }
    return nearest < e.nr_sectors ? e.sector + nearest : kNoSector;
}

}  // namespace opline::block_model
