// SPDX-License-Identifier: MIT
// Joins ops and bios. Rules that know nothing of each other, all recorded: the thread that queued the bio works for the
// op; the bio's sectors are those that an op has in flight, on a raw device or through a file's extents; the op wrote
// the bio's pages last; the bio is work of a batch, or of a sync, that the op waits for.
//
// The linker chooses among the rules when a bio is queued. The rules, and what becomes of a link later, are objects of
// their own.
#pragma once
#include "link/link_rows.hpp"
#include "link/no_request.hpp"
#include "link/request_links.hpp"

namespace opline {

class Linker {
  public:
    Linker(OpLocator &, const Plan &, StringPool &);
    Linker(const Linker &) = delete;

    Owner bio_queued(const BlockEvent &, const Bio &, std::uint32_t host);
    // A remap, before the block model sees the event: a partition's remap tells the place in the partition of the bio
    // queued next.
    void remapped(const BlockEvent &);
    void wrote(Op &, std::int64_t at_ns);
    void discarded(std::int64_t begin_ns, std::int64_t end_ns) { l_.lost.add(begin_ns, end_ns); }

    BioLinks &links() { return links_; }
    const BioLinks &links() const { return links_; }
    Directions &directions() { return directions_; }
    SyncShares &syncs() { return syncs_; }
    LinkChecks &checks() { return checks_; }
    RequestLinks &requests() { return requests_; }
    LinkRows &rows() { return rows_; }
    NoRequest &reasons() { return reasons_; }
    const LostIntervals &lost() const { return l_.lost; }
    const LinkCounts &counts() const { return l_.counts; }
    std::uint64_t evicted_pages() const { return pages_.owners().evicted(); }
    std::uint64_t evicted_writes() const { return syncs_.syncs().evicted(); }

  private:
    struct Remap {
        Sectors to;
        std::uint32_t dev = 0;
        std::uint64_t sector = 0;
    };
    Owner inherit(const Bio &, BioLink &);
    Sectors within_partition(const BlockEvent &, const Sectors &);
    // The event without its thread number, if points use the number for another process: then the event finds no op,
    // batch or sync.
    BlockEvent with_own_number(const BlockEvent &, BioLink &);
    void choose(const BlockEvent &, const Bio &, const Sectors &within, Op *thread_op, BioLink &);
    bool works_for_all(std::uint32_t host, std::int64_t tid);
    // The bio has an owner so far: an op, a batch, a journal, or the ops that wrote its pages.
    static bool has_owner(const BioLink &);
    static void mark_read_ahead(const Bio &, const Sectors &run, const Sectors &within, BioLink &);
    void count(const BioLink &);

    Linking l_;
    BioLinks links_;
    Directions directions_{l_};
    PlaceRules places_{l_, directions_};
    PageShares pages_{l_, directions_, places_};
    SyncShares syncs_;
    LinkChecks checks_{l_, links_};
    RequestLinks requests_{l_, links_, directions_, places_, syncs_, checks_};
    LinkRows rows_{l_, links_, checks_};
    NoRequest reasons_{l_, directions_, places_, pages_};
    FlatMap<std::int32_t, Remap> remaps_;  // per thread, the last
};

}  // namespace opline
