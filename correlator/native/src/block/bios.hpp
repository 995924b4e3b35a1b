// SPDX-License-Identifier: MIT
// The bios of one matcher: queued, remapped, split, completed by a bio-based device; found by place and pointer, and
// kept while a request or another bio refers to them.
#pragma once
#include <deque>
#include <vector>

#include "block/evidence.hpp"

namespace opline::block_model {

class Bios {
  public:
    Bios(Matching &m, StepEvidence &evidence) : m_(m), evidence_(evidence) {}
    Bios(const Bios &) = delete;

    BioRec &operator[](Index i) { return bios_[i]; }
    const BioRec &operator[](Index i) const { return bios_[i]; }
    std::size_t live() const { return bios_.live(); }
    // The open bio with this pointer; nullptr: none. Valid until the next bio comes or goes.
    Index *by_pointer(std::uint64_t pointer) { return by_bio_.find(pointer); }
    void forget_pointer(std::uint64_t pointer) { by_bio_.erase(pointer); }
    // The first bio without a request at the place.
    Index first_at(const Place &place) const { return places_.first(place); }

    // Block events of bios.
    Index queued(const BlockEvent &);
    Index queued_remainder(const BlockEvent &) const;
    Fate remap(const BlockEvent &);
    Fate split(const BlockEvent &);
    Fate complete(const BlockEvent &);

    Found open_at(const BlockEvent &, std::uint32_t nr_sectors, bool exact);
    Found for_request(const BlockEvent &);
    std::uint64_t next_behind(const BlockEvent &) const;
    void set_pointer(Index, std::uint64_t pointer);
    void leave_place(Index);  // the bio is a request's
    void close(Index);
    void expire();
    void finish();  // end of the trace: closes all open bios

  private:
    Index make(const BlockEvent &, std::uint64_t sector, std::uint32_t nr_sectors, Index parent, Index family);
    Index cut(const BlockEvent &, Index bio, std::uint64_t at);
    Found parent_of(const BlockEvent &);
    Index remap_to(const BlockEvent &) const;
    void drop_remap(Index);
    void release_parent(Index);
    void unhold(Index);

    Matching &m_;
    StepEvidence &evidence_;
    Pool<BioRec> bios_;
    Chain<BioRec, &BioRec::place, &PlaceEnds::bios> places_{m_.places};
    Ends age_;
    FlatMap<std::uint64_t, Index> by_bio_;
    Pool<RemapRec> remaps_;
    Places remapped_to_;
    Chain<RemapRec, &RemapRec::place, &PlaceEnds::bios> remap_places_{remapped_to_};
    Ends remap_age_;
    // bios of bio-based devices with completed children, still without their own completion
    std::deque<Waiting> served_;
    std::vector<Index> family_;  // of the bio at hand
};

}  // namespace opline::block_model
