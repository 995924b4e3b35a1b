// SPDX-License-Identifier: MIT
// What the rules said of each bio that is open, and which of these bios a sync waits for.
#pragma once
#include <algorithm>
#include <vector>

#include "base/flat_map.hpp"
#include "link/linking.hpp"

namespace opline {

class BioLinks {
  public:
    BioLink &add(std::uint64_t bio_id) {
        recent_id_ = bio_id;
        return *(recent_ = &links_[bio_id]);
    }
    // nullptr: the linker never saw the bio queued. Valid until the next bio comes or goes.
    BioLink *find(std::uint64_t bio_id) { return links_.find(bio_id); }
    const BioLink *link_of(std::uint64_t bio_id) const { return recent_id_ == bio_id ? recent_ : links_.find(bio_id); }
    // As link_of(), for a bio with probably more calls to come.
    BioLink *find_link(std::uint64_t bio_id) {
        if (recent_id_ != bio_id) {
            BioLink *link = links_.find(bio_id);
            if (!link) return nullptr;
            recent_id_ = bio_id;
            recent_ = link;
        }
        return recent_;
    }
    void forget(std::uint64_t bio_id) {
        if (BioLink *link = find_link(bio_id)) links_.erase_found(link);
        recent_id_ = 0;
        recent_ = nullptr;
        if (sync_bios_.empty()) return;
        if (auto it = std::find(sync_bios_.begin(), sync_bios_.end(), bio_id); it != sync_bios_.end())
            sync_bios_.erase(it);
    }
    void queued_by(std::uint64_t bio_id, std::uint32_t program_run) {
        if (BioLink *link = find_link(bio_id)) link->program_run = program_run;
    }

    const std::vector<std::uint64_t> &sync_bios() const { return sync_bios_; }
    void add_sync_bio(std::uint64_t bio_id) { sync_bios_.push_back(bio_id); }
    // Syncs no longer wait for these bios.
    template <class Lost>  // bool(const BioLink &)
    void drop_sync_bios(Lost lost) {
        auto gone = [&](std::uint64_t id) {
            BioLink *link = links_.find(id);
            if (link && !lost(*link)) return false;
            if (link && link->shared) link->shared->syncs.clear();
            return true;
        };
        sync_bios_.erase(std::remove_if(sync_bios_.begin(), sync_bios_.end(), gone), sync_bios_.end());
    }

  private:
    FlatMap<std::uint64_t, BioLink> links_;  // open bios
    std::uint64_t recent_id_ = 0;            // the bio of the last call; 0: none
    BioLink *recent_ = nullptr;              // the link of recent_id_
    std::vector<std::uint64_t> sync_bios_;   // open bios with a waiting sync
};

}  // namespace opline
