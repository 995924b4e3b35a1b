// SPDX-License-Identifier: MIT
// Bios: queued, remapped, split, completed by a bio-based device; and when they leave memory.
#include <utility>

#include "block/engine.hpp"

namespace opline::block_model {

namespace {
bool contains(const Bio &b, std::uint64_t sector) { return sector >= b.sector && sector - b.sector < b.nr_sectors; }
}  // namespace

Index Engine::new_bio(const BlockEvent &e, std::uint64_t sector, std::uint32_t nr_sectors, Index parent, Index family) {
    const Index i = bios_.take();
    BioRec &rec = bios_[i];
    rec.ordinal = now_;
    rec.cpu = e.cpu;
    Bio &b = rec.bio;
    b.id = next_bio_++;
    b.dev = e.dev;
    b.sector = sector;
    b.nr_sectors = nr_sectors;
    b.rwbs = e.rwbs;
    b.tid = e.tid;
    b.comm = e.comm;
    rec.parent = parent;
    rec.family = family;
    if (e.kind == BlockKind::kBioQueue) b.queue_ns = b.since_ns = e.ts_ns;
    if (parent != kNil) {
        BioRec &p = bios_[parent];
        b.parent = p.bio.id;
        b.owner = p.bio.owner;
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
        b.comm = f.bio.comm;
        b.rwbs = f.bio.rwbs;
        rec.ambiguous = f.ambiguous;
        ++f.children;
    }
    b.kind = BlockModel::kind_of(b.rwbs, nr_sectors);
    if (hooks_ && hooks_->bio_queued)
        if (Owner owner = hooks_->bio_queued(e, b)) b.owner = owner;
    rec.open_place = true;
    bio_places_.add(bios_, {b.dev, b.sector}, i);
    append<BioRec, &BioRec::age>(bios_, bio_age_, i);
    if (bios_.live() > kOpenLimit && bio_age_.head != i) {
        ++counts.evicted;
        ++counts.lost_bios;
        close_bio(bio_age_.head);
    }
    return i;
}

// A split remainder that is said to be queued after all: it is known already.
Index Engine::queued_remainder(const BlockEvent &e) const {
    for (Index i = bio_places_.first({e.dev, e.sector}); i != kNil; i = bios_[i].place.next) {
        const BioRec &rec = bios_[i];
        if (rec.family == kNil || rec.bio.queue_ns != kNoTime || rec.bio.nr_sectors != e.nr_sectors) continue;
        if (rec.finished || rec.mapped || !same_direction(rec.bio.rwbs, e.rwbs)) continue;
        if (bio_of(e) ? rec.bio.pointer == e.bio : rec.bio.tid == e.tid) return i;
    }
    return kNil;
}

Fate Engine::queue(const BlockEvent &e) {
    device(e.dev).has_queue = true;
    if (const Index known = queued_remainder(e); known != kNil) {
        bios_[known].bio.queue_ns = bios_[known].bio.since_ns = e.ts_ns;
        return bios_[known].bio.owner ? Fate::kRequestStep : Fate::kBackground;
    }
    if (const std::uint64_t pointer = bio_of(e)) {
        // The pointer comes back: whatever it was in is over, and its end was not seen.
        if (Index *old = by_bio_.find(pointer)) {
            const Index i = *old;
            if (bios_[i].request != kNil) {
                reuse(bios_[i].request);
            } else if (!bios_[i].mapped) {
                missed(bios_[i].bio.dev, bios_[i].bio.queue_ns != kNoTime ? bios_[i].bio.queue_ns : e.ts_ns, e.ts_ns);
                ++counts.lost_bios;
                close_bio(i);
            } else {
                by_bio_.erase(pointer);
            }
        }
    }
    if ((e.rwbs & rwbs::kPreflush) != 0 && e.nr_sectors == 0) check_flush_before(e);
    // A remap that leads here makes the bio that it came from this one's parent.
    const Index way = remap_to(e);
    const Index bio = new_bio(e, e.sector, e.nr_sectors, way == kNil ? kNil : remaps_[way].parent, kNil);
    BioRec &rec = bios_[bio];
    if (way != kNil) {
        rec.ambiguous = rec.ambiguous || remaps_[way].ambiguous;
        drop_remap(way);
    }
    set_bio_pointer(bio, e.bio);
    if (e.rwbs & rwbs::kPreflush)
        if (Device &d = device(e.dev); d.flush_bios.size() < kFlushBioLimit)
            d.flush_bios.push_back({bio, rec.bio.id, e.ts_ns});
    return rec.bio.owner ? Fate::kRequestStep : Fate::kBackground;
}

// The remap that leads to the event's place: its own thread's if there are several.
Index Engine::remap_to(const BlockEvent &e) const {
    Index best = kNil;
    for (Index i = remap_places_.first({e.dev, e.sector}); i != kNil; i = remaps_[i].place.next)
        if (best == kNil || (remaps_[best].tid != e.tid && remaps_[i].tid == e.tid)) best = i;
    return best;
}

// The bio of a bio-based device that this remap leads away from.
Found Engine::parent_of(const BlockEvent &e) {
    Found found;
    int best = -1;
    auto look = [&](const Place &place) {
        unsigned seen = 0;
        for (Index i = bio_places_.first(place); i != kNil && seen < kChainLimit; i = bios_[i].place.next, ++seen) {
            const BioRec &rec = bios_[i];
            if (rec.finished || !same_direction(rec.bio.rwbs, e.rwbs)) continue;
            // dm remaps a bio once, in the thread that queued it or (dm-crypt) in one of its own; raid1 once per leg.
            const int rank = (rec.mapped ? 0 : 2) + (rec.bio.tid == e.tid ? 1 : 0);
            if (rank == best) found.ambiguous = true;
            if (rank <= best) continue;
            found = {i, false, false};
            best = rank;
        }
    };
    look({e.old_dev, e.old_sector});
    // A flush that dm sends in advance of a bio's data has the bio's sector, and not as its old one, which is 0.
    if (e.nr_sectors == 0 && e.sector != e.old_sector) look({e.old_dev, e.sector});
    if (found) return found;
    // Part of a bio that was divided without an event: the last one that was remapped from there.
    if (auto *d = devices_.find(e.old_dev)) {
        const Index i = (*d)->last_based;
        if (i != kNil && !bios_[i].finished && bios_[i].bio.dev == e.old_dev && contains(bios_[i].bio, e.old_sector))
            return {i, false, false};
    }
    return found;
}

Fate Engine::remap(const BlockEvent &e) {
    ++counts.remaps;
    Found parent = parent_of(e);
    if (parent) {
        BioRec &based = bios_[parent.index];
        Device &d = device(e.old_dev);
        const bool is_data = e.nr_sectors != 0 || based.bio.nr_sectors == 0;  // no flush in advance of it
        if (is_data && !std::exchange(based.mapped, true)) based.ended_before = d.mapped;
        d.last_based = parent.index;
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

void Engine::drop_remap(Index i) {
    const RemapRec rec = remaps_[i];
    remap_places_.remove(remaps_, rec.to, i);
    unlink<RemapRec, &RemapRec::age>(remaps_, remap_age_, i);
    remaps_.give_back(i);
    unhold(rec.parent);
}

// The part of the bio from sector `at` on becomes a bio of its own.
Index Engine::cut_bio(const BlockEvent &e, Index i, std::uint64_t at) {
    const std::uint32_t front = static_cast<std::uint32_t>(at - bios_[i].bio.sector);
    const std::uint32_t rest = bios_[i].bio.nr_sectors - front;
    bios_[i].bio.nr_sectors = front;
    const Index remainder = new_bio(e, at, rest, kNil, i);
    ++counts.splits;
    // The kernel's clone is the front part; the remainder goes on as the bio that was queued.
    Bio &first = bios_[i].bio, &second = bios_[remainder].bio;
    second.pointer = first.pointer;
    first.pointer = 0;
    if (pointers_ && second.pointer) by_bio_.put(second.pointer, remainder);
    return remainder;
}

Fate Engine::split(const BlockEvent &e) {
    Index bio = kNil;
    const std::uint64_t at = e.new_sector;
    auto fits = [&](Index i) {
        const Bio &b = bios_[i].bio;
        return bios_[i].request == kNil && !bios_[i].finished && b.dev == e.dev && at != b.sector && contains(b, at);
    };
    if (pointers_)
        for (std::uint64_t pointer : {e.parent, e.bio})
            if (Index *known = pointer && bio == kNil ? by_bio_.find(pointer) : nullptr; known && fits(*known))
                bio = *known;
    unsigned seen = 0;
    for (Index i = bio_places_.first({e.dev, e.sector}); bio == kNil && i != kNil && seen < kChainLimit; ++seen) {
        if (fits(i) && bios_[i].bio.tid == e.tid) bio = i;
        i = bios_[i].place.next;
    }
    for (Index i = bio_places_.first({e.dev, e.sector}); bio == kNil && i != kNil; i = bios_[i].place.next)
        if (fits(i)) bio = i;
    // dm says it after the front part was remapped, some kernels with the remainder's sector twice.
    if (bio == kNil)
        if (Index last = device(e.dev).last_based; last != kNil && fits(last)) bio = last;
    seen = 0;  // dm-raid remaps nothing: the last one that the thread queued there
    for (Index i = bio_age_.tail; bio == kNil && i != kNil && seen < kChainLimit; i = bios_[i].age.prev, ++seen)
        if (fits(i) && bios_[i].bio.tid == e.tid) bio = i;
    if (bio == kNil) {
        ++counts.unmatched_split;
        return Fate::kOrphanRequest;
    }
    ++device(e.dev).split_in_turn;
    cut_bio(e, bio, at);
    if (e.parent && e.bio) set_bio_pointer(bio, e.bio);
    return bios_[bio].bio.owner ? Fate::kRequestStep : Fate::kBackground;
}

Fate Engine::bio_complete(const BlockEvent &e) {
    Index bio = kNil;
    if (Index *known = bio_of(e) ? by_bio_.find(e.bio) : nullptr;
        known && bios_[*known].request == kNil && !bios_[*known].finished && bios_[*known].bio.dev == e.dev)
        bio = *known;
    int best = -1;
    unsigned seen = 0;
    for (Index i = bio == kNil ? bio_places_.first({e.dev, e.sector}) : kNil; i != kNil && seen < kChainLimit;
         i = bios_[i].place.next, ++seen) {
        const BioRec &rec = bios_[i];
        if (rec.finished || !same_direction(rec.bio.rwbs, e.rwbs)) continue;
        // Its lower bios are done before it is.
        const int rank = (rec.bio.nr_sectors == e.nr_sectors ? 4 : 0) + (rec.mapped ? 1 : 0) +
                         (rec.mapped && rec.children == 0 ? 2 : 0);
        if (rank > best) bio = i, best = rank;
    }
    if (bio == kNil) {
        ++counts.unmatched_bio_complete;
        return Fate::kOrphanRequest;
    }
    check_remapped(e, bios_[bio]);
    const Fate fate = bios_[bio].bio.owner ? Fate::kRequestStep : Fate::kBackground;
    // After a split it carries the last fragment: all that it was split from are done too. First the first: each is
    // kept while the next refers to it.
    std::vector<Index> &family = scratch_;
    family.clear();
    for (Index i = bio; i != kNil; i = bios_[i].family) family.push_back(i);
    for (std::size_t k = family.size(); k-- > 0;) {
        const Index i = family[k];
        if (bios_[i].finished || bios_[i].request != kNil) continue;
        bios_[i].bio.complete_ns = e.ts_ns;
        close_bio(i);
    }
    return fate;
}

void Engine::set_bio_pointer(Index i, std::uint64_t pointer) {
    Bio &b = bios_[i].bio;
    if (pointer == 0 || b.pointer == pointer) return;
    if (pointers_ && b.pointer)
        if (Index *known = by_bio_.find(b.pointer); known && *known == i) by_bio_.erase(b.pointer);
    b.pointer = pointer;
    if (pointers_) by_bio_.put(pointer, i);
}

void Engine::leave_place(Index i) {
    BioRec &rec = bios_[i];
    if (!rec.open_place) return;
    rec.open_place = false;
    bio_places_.remove(bios_, {rec.bio.dev, rec.bio.sector}, i);
    unlink<BioRec, &BioRec::age>(bios_, bio_age_, i);
}

// Done with it: reported once; its record stays while others refer to it.
void Engine::close_bio(Index i) {
    BioRec &rec = bios_[i];
    if (rec.finished) return;
    rec.finished = true;
    leave_place(i);
    if (pointers_ && rec.bio.pointer)
        if (Index *known = by_bio_.find(rec.bio.pointer); known && *known == i) by_bio_.erase(rec.bio.pointer);
    if (hooks_ && hooks_->bio_done) hooks_->bio_done(rec.bio);
    if (rec.mapped)
        if (Device &d = device(rec.bio.dev); d.last_based == i) d.last_based = kNil;
    if (rec.children == 0) release_parent(i);
}

// Its record is free; those that it referred to may be as well.
void Engine::release_parent(Index i) {
    const Index parent = bios_[i].parent, family = bios_[i].family;
    bios_.give_back(i);
    if (parent != kNil) unhold(parent);
    if (family != kNil) unhold(family);
}

void Engine::unhold(Index i) {
    BioRec &rec = bios_[i];
    if (--rec.children > 0) return;
    if (rec.finished) release_parent(i);
    else if (rec.mapped) served_.push_back({i, rec.bio.id, last_ns_});
}

// Bios of bio-based devices are done when what they were remapped to is, if no completion of their own comes.
void Engine::expire() {
    while (!served_.empty() && last_ns_ - served_.front().since_ns > kServedLinger_ns) {
        const Waiting w = served_.front();
        served_.pop_front();
        const BioRec &rec = bios_[w.bio];
        if (rec.bio.id == w.id && !rec.finished && rec.children == 0) close_bio(w.bio);
    }
}

}  // namespace opline::block_model
