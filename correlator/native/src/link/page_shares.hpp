// SPDX-License-Identifier: MIT
// Bios that write pages of mapped files back, for the ops that wrote these pages last.
#pragma once
#include "link/bio_links.hpp"
#include "link/place_rules.hpp"

namespace opline {

class PageShares {
  public:
    PageShares(Linking &l, Directions &directions, PlaceRules &places)
        : l_(l), directions_(directions), places_(places) {}

    const PageOwners &owners() const { return pages_; }
    bool pages_have_owner() const;  // of the bio at hand
    void share_pages(const Bio &, const Sectors &within, BioLink &);
    void wrote(const Op &, std::int64_t at_ns);

  private:
    Op *writes_page(const Bio &, std::uint32_t host, std::uint32_t file, std::uint64_t page, std::uint32_t &writers);

    Linking &l_;
    Directions &directions_;
    PlaceRules &places_;
    PageOwners pages_;
};

}  // namespace opline
