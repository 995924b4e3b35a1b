// SPDX-License-Identifier: MIT
#include "block/merges.hpp"

namespace opline::block_model {

Fate Merges::merge(const BlockEvent &e, bool front) {
    ++(front ? m_.counts.front_merges : m_.counts.back_merges);
    const Found bio = bios_.for_request(e);
    // If the collector names further bios, a bio's pointer at the issue tells the request of the merge.
    const Found target = finder_.merge_target(e, front, !has_rq_bio_);
    if (bio) {
        bios_[bio.index].bio.merged = true;
        bios_[bio.index].bio.merge_ns = e.ts_ns;
        bios_.set_pointer(bio.index, e.bio);
    }
    if (target.ambiguous && bio && has_rq_bio_) bios_[bio.index].doubtful = true;
    if (!bio || !target) {
        ++m_.counts.unmatched_merge;
        if (m_.devices.of(e.dev).has_queue) evidence_.came_from_nowhere(e);
        if (bio) bios_.close(bio.index);
    }
    if (!target) return Fate::kOrphanRequest;
    ReqRec &rec = requests_[target.index];
    requests_.places().rekey(target.index, front ? e.sector : rec.start, rec.remaining + e.nr_sectors);
    rec.r.sector = rec.start;
    rec.r.nr_sectors = rec.remaining;
    ++rec.r.merges;
    rec.r.ambiguous = rec.r.ambiguous || bio.ambiguous;
    if (!bio) return Fate::kOrphanRequest;
    requests_.attach(bio.index, target.index, front, false);
    return requests_.fate_of(requests_[target.index]);
}

// The event's request is absorbed by a request that ends at its first sector.
Fate Merges::rq_merge(const BlockEvent &e) {
    ++m_.counts.rq_merges;
    const Found next = finder_.request_for(e, BlockKind::kRqMerge);
    if (!next) {
        ++m_.counts.unmatched_merge;
        return Fate::kOrphanRequest;
    }
    requests_.places().leave(next.index);  // the request is no candidate for itself
    const Found into = finder_.merge_target(e, false, true);
    if (!into) {
        ++m_.counts.unmatched_merge;
        requests_.close(next.index);
        return Fate::kOrphanRequest;
    }
    ReqRec &to = requests_[into.index], &from = requests_[next.index];
    requests_.places().rekey(into.index, to.start, to.remaining + from.remaining);
    to.r.nr_sectors = to.remaining;
    to.r.merges += from.r.merges + 1;
    to.r.ambiguous = to.r.ambiguous || into.ambiguous || next.ambiguous || from.r.ambiguous;
    for (Index b : from.bios) {
        bios_[b].bio.merged = true;
        requests_.attach(b, into.index, false, bios_[b].confirmed);
    }
    from.bios.clear();
    from.r.bios.clear();
    from.r.owners.clear();
    from.r.absorbed_by = to.r.id;
    requests_.close(next.index);
    return requests_.fate_of(requests_[into.index]);
}

// At the issue a pointer tells the request of the bio; adjacency may have chosen another request.
void Merges::confirm_bio(Index b, Index i) {
    BioRec &bio = bios_[b];
    if (bio.request != i) {
        ++m_.counts.corrected_merges;
        if (const Index other = bio.request; other != kNil) {
            ReqRec &wrong = requests_[other];
            if (wrong.r.merges > 0) --wrong.r.merges;
            if (wrong.step != Step::kIssued && wrong.remaining > bio.bio.nr_sectors) {
                const bool front = wrong.start == bio.bio.sector;
                requests_.places().rekey(other, front ? wrong.start + bio.bio.nr_sectors : wrong.start,
                                         wrong.remaining - bio.bio.nr_sectors);
                wrong.r.sector = wrong.start;
                wrong.r.nr_sectors = wrong.remaining;
            }
            requests_.detach(b);
        }
        bio.bio.merged = true;
        ++requests_[i].r.merges;
        const auto &bios = requests_[i].bios;
        requests_.attach(b, i, !bios.empty() && bio.bio.sector < bios_[bios.front()].bio.sector, true);
    }
    bio.confirmed = true;
    bio.doubtful = false;
    m_.said.merged_bio = bio.ordinal;
    m_.said.issue = requests_[i].issue_ordinal;
    m_.said.place = {requests_[i].r.dev, requests_[i].start};
}

// BPF's collector names every further bio of a request at the issue; adjacency may have chosen another request.
Fate Merges::rq_bio(const BlockEvent &e) {
    if (!m_.pointers) return Fate::kContext;
    has_rq_bio_ = true;
    const Index *rq = requests_.by_pointer(e.rq), *bio = bios_.by_pointer(e.bio);
    if (!rq || !bio || e.rq == 0 || e.bio == 0 || bios_[*bio].finished) {
        ++m_.counts.unmatched_rq_bio;
        return Fate::kOrphanRequest;
    }
    const Index i = *rq;
    confirm_bio(*bio, i);
    return requests_.fate_of(requests_[i]);
}

}  // namespace opline::block_model
