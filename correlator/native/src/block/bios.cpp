// SPDX-License-Identifier: MIT
#include "block/bios.hpp"

namespace opline::block_model {
namespace {

constexpr std::size_t kRemapLimit = std::size_t{1} << 16;
constexpr std::int64_t kServedLinger_ns = 1'000'000'000;

bool contains(const Bio &b, std::uint64_t sector) { return sector >= b.sector && sector - b.sector < b.nr_sectors; }

}  // namespace

Index Bios::make(const BlockEvent &e, std::uint64_t sector, std::uint32_t nr_sectors, Index parent, Index family) {
    const Index i = bios_.take();
    BioRec &rec = bios_[i];
    rec.ordinal = m_.now;
    rec.cpu = e.cpu;
    Bio &b = rec.bio;
    b.id = ++m_.shared.bio;
    b.dev = e.dev;
    b.sector = sector;
    b.nr_sectors = nr_sectors;
    b.rwbs = e.rwbs;
    b.tid = e.tid;
    b.pid = e.pid;
    b.comm = e.comm;
    b.cgroup = e.cgroup;
    rec.parent = parent;
    rec.family = family;
    if (e.kind == BlockKind::kBioQueue) b.queue_ns = b.since_ns = e.ts_ns;
    if (parent != kNil) {
        BioRec &p = bios_[parent];
        b.parent = p.bio.id;
        b.owner = p.bio.owner;
        if (p.bio.cgroup != 0) b.cgroup = p.bio.cgroup;  // the kernel's own threads queue the bios made from the parent
        if (b.since_ns == kNoTime) b.since_ns = p.bio.since_ns;
        rec.ambiguous = p.ambiguous;
        ++p.children;
    }
    if (family != kNil) {
        BioRec &f = bios_[family];
        b.parent = b.split_from = f.bio.id;
        b.owner = f.bio.owner;
        b.since_ns = f.bio.since_ns;
        b.tid = f.bio.tid;
        b.pid = f.bio.pid;
        b.comm = f.bio.comm;
        b.cgroup = f.bio.cgroup;
        b.rwbs = f.bio.rwbs;
        rec.ambiguous = f.ambiguous;
        ++f.children;
    }
    b.kind = BlockModel::kind_of(b.rwbs, nr_sectors);
    if (m_.hooks && m_.hooks->bio_queued)
        if (Owner owner = m_.hooks->bio_queued(e, b)) b.owner = owner;
    rec.open_place = true;
    places_.add(bios_, {b.dev, b.sector}, i);
    append<BioRec, &BioRec::age>(bios_, age_, i);
    if (bios_.live() > kOpenLimit && age_.head != i) {
        ++m_.counts.evicted;
        ++m_.counts.lost_bios;
        close(age_.head);
    }
    return i;
}

// If a remap leads to the bio's place, the remapped bio is the new bio's parent.
Index Bios::queued(const BlockEvent &e) {
    const Index way = remap_to(e);
    const Index bio = make(e, e.sector, e.nr_sectors, way == kNil ? kNil : remaps_[way].parent, kNil);
    if (way != kNil) {
        bios_[bio].ambiguous = bios_[bio].ambiguous || remaps_[way].ambiguous;
        drop_remap(way);
    }
    set_pointer(bio, e.bio);
    return bio;
}

// A split remainder with a late Q: the bio is known already.
Index Bios::queued_remainder(const BlockEvent &e) const {
    for (Index i = places_.first({e.dev, e.sector}); i != kNil; i = bios_[i].place.next) {
        const BioRec &rec = bios_[i];
        if (rec.family == kNil || rec.bio.queue_ns != kNoTime || rec.bio.nr_sectors != e.nr_sectors) continue;
        if (rec.finished || rec.mapped || !same_direction(rec.bio.rwbs, e.rwbs)) continue;
        if (m_.bio_of(e) ? rec.bio.pointer == e.bio : rec.bio.tid == e.tid) return i;
    }
    return kNil;
}

// The remap to the event's place; among several, the remap of the event's thread.
Index Bios::remap_to(const BlockEvent &e) const {
    Index best = kNil;
    for (Index i = remap_places_.first({e.dev, e.sector}); i != kNil; i = remaps_[i].place.next)
        if (best == kNil || (remaps_[best].tid != e.tid && remaps_[i].tid == e.tid)) best = i;
    return best;
}

// The bio of a bio-based device that the event remaps.
Found Bios::parent_of(const BlockEvent &e) {
    Found found;
    int best = -1;
    auto look = [&](const Place &place) {
        unsigned seen = 0;
        for (Index i = places_.first(place); i != kNil && seen < kChainLimit; i = bios_[i].place.next, ++seen) {
            const BioRec &rec = bios_[i];
            if (rec.finished || !same_direction(rec.bio.rwbs, e.rwbs)) continue;
            // dm remaps a bio once, in the queueing thread or (dm-crypt) in a thread of its own; raid1 remaps once per
            // leg.
            const int rank = (rec.mapped ? 0 : 2) + (rec.bio.tid == e.tid ? 1 : 0);
            if (rank == best) found.ambiguous = true;
            if (rank <= best) continue;
            found = {i, false, false};
            best = rank;
        }
    };
    look({e.old_dev, e.old_sector});
    // A flush sent by dm before a bio's data has the bio's sector; its old sector is 0.
    if (e.nr_sectors == 0 && e.sector != e.old_sector) look({e.old_dev, e.sector});
    if (found) return found;
    // Part of a bio divided without an event: the last bio remapped from the device.
    if (const Device *d = m_.devices.find(e.old_dev)) {
        const Index i = d->last_based;
        if (i != kNil && !bios_[i].finished && bios_[i].bio.dev == e.old_dev && contains(bios_[i].bio, e.old_sector))
            return {i, false, false};
    }
    return found;
}

Fate Bios::remap(const BlockEvent &e) {
    ++m_.counts.remaps;
    Found parent = parent_of(e);
    if (parent) {
        BioRec &based = bios_[parent.index];
        const bool is_data = e.nr_sectors != 0 || based.bio.nr_sectors == 0;  // no flush sent before the data
        if (is_data) based.mapped = true;
        m_.devices.of(e.old_dev).last_based = parent.index;
    } else {
        // A partition under a dm device: dm's remap leads to (disk, sector in the partition), the partition's from
        // there.
        Index r = remap_places_.first({e.old_dev, e.old_sector});
        if (r == kNil) r = remap_places_.first({e.dev, e.old_sector});
        if (r == kNil) return Fate::kContext;
        parent = {remaps_[r].parent, remaps_[r].ambiguous, false};
        ++bios_[parent.index].children;
        drop_remap(r);
        --bios_[parent.index].children;
    }
    const Index i = remaps_.take();
    RemapRec &rec = remaps_[i];
    rec.to = {e.dev, e.sector};
    rec.parent = parent.index;
    rec.tid = e.tid;
    rec.ambiguous = parent.ambiguous;
    ++bios_[parent.index].children;
    remap_places_.add(remaps_, rec.to, i);
    append<RemapRec, &RemapRec::age>(remaps_, remap_age_, i);
    const Fate fate = bios_[parent.index].bio.owner ? Fate::kRequestStep : Fate::kBackground;
    if (remaps_.live() > kRemapLimit) drop_remap(remap_age_.head);
    return fate;
}

void Bios::drop_remap(Index i) {
    const RemapRec rec = remaps_[i];
    remap_places_.remove(remaps_, rec.to, i);
    unlink<RemapRec, &RemapRec::age>(remaps_, remap_age_, i);
    remaps_.give_back(i);
    unhold(rec.parent);
}

// The part of the bio from sector `at` on becomes a new bio.
Index Bios::cut(const BlockEvent &e, Index i, std::uint64_t at) {
    const std::uint32_t front = static_cast<std::uint32_t>(at - bios_[i].bio.sector);
    const std::uint32_t rest = bios_[i].bio.nr_sectors - front;
    bios_[i].bio.nr_sectors = front;
    const Index remainder = make(e, at, rest, kNil, i);
    ++m_.counts.splits;
    // The kernel's clone is the front part; the remainder continues as the queued bio.
    Bio &first = bios_[i].bio, &second = bios_[remainder].bio;
    second.pointer = first.pointer;
    first.pointer = 0;
    if (m_.pointers && second.pointer) by_bio_.put(second.pointer, remainder);
    return remainder;
}

Fate Bios::split(const BlockEvent &e) {
    Index bio = kNil;
    const std::uint64_t at = e.new_sector;
    auto fits = [&](Index i) {
        const Bio &b = bios_[i].bio;
        return bios_[i].request == kNil && !bios_[i].finished && b.dev == e.dev && at != b.sector && contains(b, at);
    };
    if (m_.pointers)
        for (std::uint64_t pointer : {e.parent, e.bio})
            if (Index *known = pointer && bio == kNil ? by_bio_.find(pointer) : nullptr; known && fits(*known))
                bio = *known;
    unsigned seen = 0;
    for (Index i = places_.first({e.dev, e.sector}); bio == kNil && i != kNil && seen < kChainLimit; ++seen) {
        if (fits(i) && bios_[i].bio.tid == e.tid) bio = i;
        i = bios_[i].place.next;
    }
    for (Index i = places_.first({e.dev, e.sector}); bio == kNil && i != kNil; i = bios_[i].place.next)
        if (fits(i)) bio = i;
    // dm writes the event after the remap of the front part; some kernels write the remainder's sector twice.
    if (bio == kNil)
        if (Index last = m_.devices.of(e.dev).last_based; last != kNil && fits(last)) bio = last;
    seen = 0;  // dm-raid remaps nothing: take the last bio queued there by the thread
    for (Index i = age_.tail; bio == kNil && i != kNil && seen < kChainLimit; i = bios_[i].age.prev, ++seen)
        if (fits(i) && bios_[i].bio.tid == e.tid) bio = i;
    if (bio == kNil) {
        ++m_.counts.unmatched_split;
        return Fate::kOrphanRequest;
    }
    cut(e, bio, at);
    if (e.parent && e.bio) set_pointer(bio, e.bio);
    return bios_[bio].bio.owner ? Fate::kRequestStep : Fate::kBackground;
}

Fate Bios::complete(const BlockEvent &e) {
    Index bio = kNil;
    if (Index *known = m_.bio_of(e) ? by_bio_.find(e.bio) : nullptr;
        known && bios_[*known].request == kNil && !bios_[*known].finished && bios_[*known].bio.dev == e.dev)
        bio = *known;
    int best = -1;
    unsigned seen = 0;
    for (Index i = bio == kNil ? places_.first({e.dev, e.sector}) : kNil; i != kNil && seen < kChainLimit;
         i = bios_[i].place.next, ++seen) {
        const BioRec &rec = bios_[i];
        if (rec.finished || !same_direction(rec.bio.rwbs, e.rwbs)) continue;
        // The lower bios complete before the bio itself.
        const int rank = (rec.bio.nr_sectors == e.nr_sectors ? 4 : 0) + (rec.mapped ? 1 : 0) +
                         (rec.mapped && rec.children == 0 ? 2 : 0);
        if (rank > best) bio = i, best = rank;
    }
    if (bio == kNil) {
        ++m_.counts.unmatched_bio_complete;
        return Fate::kOrphanRequest;
    }
    const Fate fate = bios_[bio].bio.owner ? Fate::kRequestStep : Fate::kBackground;
    // After a split the event names the last fragment: the fragments before are done, too. The first fragment comes
    // first, as each fragment is kept while the next fragment refers to it.
    family_.clear();
    for (Index i = bio; i != kNil; i = bios_[i].family) family_.push_back(i);
    for (std::size_t k = family_.size(); k-- > 0;) {
        const Index i = family_[k];
        if (bios_[i].finished || bios_[i].request != kNil) continue;
        bios_[i].bio.complete_ns = e.ts_ns;
        close(i);
    }
    return fate;
}

void Bios::set_pointer(Index i, std::uint64_t pointer) {
    Bio &b = bios_[i].bio;
    if (pointer == 0 || b.pointer == pointer) return;
    if (m_.pointers && b.pointer)
        if (Index *known = by_bio_.find(b.pointer); known && *known == i) by_bio_.erase(b.pointer);
    b.pointer = pointer;
    if (m_.pointers) by_bio_.put(pointer, i);
}

void Bios::leave_place(Index i) {
    BioRec &rec = bios_[i];
    if (!rec.open_place) return;
    rec.open_place = false;
    places_.remove(bios_, {rec.bio.dev, rec.bio.sector}, i);
    unlink<BioRec, &BioRec::age>(bios_, age_, i);
}

// Reports the bio once; the record stays while other records refer to it.
void Bios::close(Index i) {
    BioRec &rec = bios_[i];
    if (rec.finished) return;
    rec.finished = true;
    leave_place(i);
    if (m_.pointers && rec.bio.pointer)
        if (Index *known = by_bio_.find(rec.bio.pointer); known && *known == i) by_bio_.erase(rec.bio.pointer);
    if (m_.hooks && m_.hooks->bio_done) m_.hooks->bio_done(rec.bio);
    if (rec.mapped)
        if (Device &d = m_.devices.of(rec.bio.dev); d.last_based == i) d.last_based = kNil;
    if (rec.children == 0) release_parent(i);
}

// Frees the record, then perhaps the records that it referred to.
void Bios::release_parent(Index i) {
    const Index parent = bios_[i].parent, family = bios_[i].family;
    bios_.give_back(i);
    if (parent != kNil) unhold(parent);
    if (family != kNil) unhold(family);
}

void Bios::unhold(Index i) {
    BioRec &rec = bios_[i];
    if (--rec.children > 0) return;
    if (rec.finished) release_parent(i);
    else if (rec.mapped) served_.push_back({i, rec.bio.id, m_.last_ns});
}

// A bio of a bio-based device without its own completion is done when its children are done.
void Bios::expire() {
    while (!served_.empty() && m_.last_ns - served_.front().since_ns > kServedLinger_ns) {
        const Waiting w = served_.front();
        served_.pop_front();
        const BioRec &rec = bios_[w.bio];
        if (rec.bio.id == w.id && !rec.finished && rec.children == 0) close(w.bio);
    }
}

void Bios::finish() {
    while (remap_age_.head != kNil) drop_remap(remap_age_.head);
    while (age_.head != kNil) close(age_.head);
    served_.clear();
}

}  // namespace opline::block_model
