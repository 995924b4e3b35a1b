// SPDX-License-Identifier: MIT
// Why an op has no block request: one word of a closed list (opline/losses.py has their meanings).
#pragma once
#include "link/page_shares.hpp"

namespace opline {

class NoRequest {
  public:
    NoRequest(Linking &l, Directions &directions, PlaceRules &places, PageShares &pages)
        : l_(l), directions_(directions), places_(places), pages_(pages) {}

    // Why nothing is linked to an op (docs/losses.md), where the trace has block events; the op is about to be settled.
    const char *no_request(const Op &);

  private:
    const char *nothing_queued(const Op &);  // why: of a whole op without a bio
    bool passed_io(const Op &) const;

    Linking &l_;
    Directions &directions_;
    PlaceRules &places_;
    PageShares &pages_;
    bool io_seen_ = false;  // an op passed a point with `io`
};

}  // namespace opline
