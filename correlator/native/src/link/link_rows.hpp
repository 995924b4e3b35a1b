// SPDX-License-Identifier: MIT
// The rows that a bio makes in the tables links and deferred once it is done.
#pragma once
#include <string>
#include <vector>

#include "link/link_checks.hpp"

namespace opline {

class LinkRows {
  public:
    LinkRows(Linking &l, BioLinks &links, LinkChecks &checks) : l_(l), links_(links), checks_(checks) {}

    // The bio is done, after its request: the bio's rows, valid until the next call. Each row is checked for the law
    // that the bio and the op have one process (LinkCounts::process_violations).
    const std::vector<LinkRow> &links(const Bio &);
    const std::vector<DeferredRow> &deferred(const Bio &);
    // The end of the bio's request, or (on a bio-based device) of the bio; kNoTime: missing.
    std::int64_t done_ns(const Bio &) const;
    const std::string &file_of(const BioLink &link) const { return l_.maps.path(link.shared->file); }

  private:
    std::uint64_t serial(std::uint64_t ref) const {
        const Op *op = l_.locator.find(ref);
        return op ? op->serial : serial_of(ref);
    }

    Linking &l_;
    BioLinks &links_;
    LinkChecks &checks_;
    std::vector<LinkRow> link_rows_;
    std::vector<DeferredRow> deferred_rows_;
};

}  // namespace opline
