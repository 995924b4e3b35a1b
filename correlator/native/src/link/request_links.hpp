// SPDX-License-Identifier: MIT
// What a request that is done means for ops: every op in memory that waits for one of its bios gets the cut.
#pragma once
#include <array>
#include <vector>

#include "link/link_checks.hpp"
#include "link/place_rules.hpp"
#include "link/sync_shares.hpp"

namespace opline {

class RequestLinks {
  public:
    RequestLinks(Linking &l, BioLinks &links, Directions &directions, PlaceRules &places, SyncShares &syncs,
                 LinkChecks &checks)
        : l_(l), links_(links), directions_(directions), places_(places), syncs_(syncs), checks_(checks) {}

    Served request_done(const Request &);
    // The op is this request.
    void serve(Op &, const Request &);
    // For the last request_done(): refs of the served ops.
    const std::vector<std::uint64_t> &served() const { return served_; }
    // The flush whose D also counts for the request; nullptr: the request has its own D, or no known flush.
    const Flush *flush_of(const Request &) const;
    // Only the request's owners wait for the request: no batch, no sync, no op that wrote its pages.
    bool waiters_known(const Request &) const;
    // The request's completion is missing: the known steps may be another request's.
    void doubt(const Request &);

  private:
    struct WaitingBio {  // for a request
        std::uint64_t op;
        std::int64_t q, floor_ns;
    };
    bool lost_between(const BioLink &, const Request &) const;  // from the first known step to the last
    void wait_for(std::uint64_t op, std::int64_t q, std::int64_t floor_ns);
    void wait_for_read_ahead(BioLink &, const Request &);
    void wait_for_write_back(BioLink &, const Request &);
    // `bytes`: 0: unknown; bytes beyond the bio do not count.
    void wait_for_pages(BioLink &, std::uint64_t op, std::uint64_t bytes, std::int64_t since_ns);
    std::uint32_t distinct_ops(std::vector<const Sync *> &);
    RequestCut cut_of(const Request &) const;
    std::int64_t queued_for(const Batch &, const Request &);

    Linking &l_;
    BioLinks &links_;
    Directions &directions_;
    PlaceRules &places_;
    SyncShares &syncs_;
    LinkChecks &checks_;
    std::array<Flush, 256> flushes_{};  // the latest flushes
    std::size_t next_flush_ = 0;
    std::vector<WaitingBio> waiting_;
    std::vector<std::uint64_t> served_;
};

}  // namespace opline
