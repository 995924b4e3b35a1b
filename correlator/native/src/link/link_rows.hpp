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

    // The bio is done, after its request: the rows that it makes, valid until the next call.
    // Of each, the law is checked that the bio's process and the op's are one (LinkCounts::process_violations).
    const std::vector<LinkRow> &links(const Bio &);
    const std::vector<DeferredRow> &deferred(const Bio &);
    // When its request was done, or (of a bio-based device) itself; kNoTime: not seen.
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
