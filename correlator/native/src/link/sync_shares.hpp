// SPDX-License-Identifier: MIT
// Bios that a sync or a journal writes for several ops.
#pragma once
#include <memory>

#include "link/bio_links.hpp"
#include "link/place_rules.hpp"

namespace opline {

class SyncShares {
  public:
    SyncShares(Linking &, const Plan &, BioLinks &, PlaceRules &);

    const SyncWork &syncs() const { return syncs_; }
    void share_sync(const Bio &, const Sectors &within, BioLink &);
    void wrote(Op &op) { syncs_.wrote(op, has_syncs_); }
    void sync_begun(Op &, std::int64_t tid, std::int64_t at_ns);
    // nullptr: the op was in none.
    std::shared_ptr<Sync> sync_ended(Op &, std::int64_t at_ns);

  private:
    void supersede_commits(const Bio &);
    bool is_journal(const Bio &);

    Linking &l_;
    BioLinks &links_;
    PlaceRules &places_;
    SyncWork syncs_;
    const bool has_syncs_;  // the model names some
    std::uint32_t sync_space_;
    FlatMap<std::uint32_t, bool> kernel_comms_;  // pool id of a comm → belongs to a kernel thread that writes a journal
};

}  // namespace opline
