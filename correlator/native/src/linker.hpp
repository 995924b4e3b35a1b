// SPDX-License-Identifier: MIT
// Joins ops and bios. Two independent rules, both recorded: the thread that queued the bio worked for the op; the
// bio's sectors are those that an op has in flight.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "block.hpp"
#include "flat_map.hpp"
#include "stitcher.hpp"

namespace opline {

// What both rules said of one bio. References are op_ref()s; 0: nobody.
struct BioLink {
    std::uint64_t by_thread = 0, by_sector = 0, chosen = 0;
    std::uint32_t sector_candidates = 0;
    std::shared_ptr<Batch> batch;
    std::int64_t queue_ns = kNoTime;
    std::uint64_t sector = 0;
    std::int32_t tid = -1;
    bool inherited = false;  // owner came from the bio that it was remapped or split from
};

struct LinkCounts {
    std::uint64_t agree = 0, differ = 0, thread_only = 0, sector_only = 0, neither = 0, ambiguous = 0,
                  batch = 0;  // a batch's: no one op is to be found
};

// A flush that the block layer issued for all that wait for it: each of them has a request of its own (Q, G, C).
struct Flush {
    std::uint64_t request = 0;
    std::int64_t issue_ns = kNoTime;
    std::int32_t issue_tid = -1;
};

class Linker {
  public:
    explicit Linker(Stitcher &stitcher) : stitcher_(stitcher) {}

    Owner bio_queued(const BlockEvent &, const Bio &, std::uint32_t host);
    // The request is done: every op in memory that owns one of its bios gets the cut.
    void request_done(const Request &);
    // The flush whose D is the request's too; nullptr: it has one of its own, or none is known.
    const Flush *flush_of(const Request &) const;
    // nullptr: the linker never saw the bio queued.
    const BioLink *link_of(std::uint64_t bio_id) const { return links_.find(bio_id); }
    void forget(std::uint64_t bio_id) { links_.erase(bio_id); }
    const LinkCounts &counts() const { return counts_; }

  private:
    void by_sector(const Bio &, BioLink &);

    Stitcher &stitcher_;
    std::array<Flush, 256> flushes_{};  // the last ones
    std::size_t next_flush_ = 0;
    FlatMap<std::uint64_t, BioLink> links_;  // bios that are open
    LinkCounts counts_;
};

}  // namespace opline
