// SPDX-License-Identifier: MIT
// Joins ops and bios. Rules that know nothing of each other, all recorded: the thread that queued the bio works for the
// op; the bio's sectors are those that an op has in flight, on a raw device or through a file's extents; the op wrote
// the bio's pages last; the bio is work of a batch, or of a sync, that the op waits for.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/flat_map.hpp"
#include "block/block.hpp"
#include "link/file_maps.hpp"
#include "link/page_owners.hpp"
#include "link/sync_work.hpp"
#include "link/targets.hpp"
#include "stitch/stitcher.hpp"

namespace opline {

// Rules that agree on an op and a bio.
namespace rule {
constexpr std::uint32_t kThread = 1, kSector = 2, kExtent = 4, kPage = 8, kBatch = 16, kParent = 32;
}

// Part of a bio that an op wrote last.
struct PageShare {
    std::uint64_t op = 0;  // op_ref()
    std::uint64_t bytes = 0;
    std::int64_t written_ns = 0;
    std::uint64_t first = 0, last = 0;  // sectors of the bio's device, [first, last)
    bool ambiguous = false;
};

// What a bio has to do with others than the one op that it belongs to.
struct SharedWork {
    std::vector<PageShare> pages;
    std::vector<std::shared_ptr<Sync>> syncs;  // that wait for it
    std::uint32_t file = kNoFile;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> readers;  // (op, bytes) that wait for its read-ahead
};

// What the rules said of one bio. References are op_ref()s; 0: nobody.
struct BioLink {
    std::uint64_t by_thread = 0, by_sector = 0, by_extent = 0, chosen = 0;
    std::uint32_t candidates = 0;  // ops in flight on its sectors
    std::uint32_t rules = 0;       // that speak for `chosen`
    std::shared_ptr<Batch> batch;  // declared by the model
    std::shared_ptr<Sync> sync;    // in which its thread was
    std::unique_ptr<SharedWork> shared;
    std::uint64_t own_bytes = 0;  // of `chosen`; 0: not known
    std::int64_t queue_ns = kNoTime;
    std::uint32_t host = 0;
    bool pages_owned = false;       // some op wrote pages of it that were not on the disk yet
    bool journal = false;           // of a journal: for the syncs that are open
    bool commit = false;            // of a journal, and what that wrote before was done
    std::int32_t journal_tid = -1;  // who writes the journal
    bool inherited = false;         // it was remapped or split from another, which the rules were asked about
    bool others = false;            // it serves further ops, known or not
    bool waited_for = false;        // `chosen` goes on once it is done, and not before
    // `chosen` has its bytes in flight and another thread wrote the pages: it may not wait for them
    bool dirtied = false;
    // Of a read-ahead: which device, and how many sectors before the request's place.
    bool read_ahead = false;
    std::uint32_t read_ahead_dev = 0;
    std::uint64_t read_ahead_shift = 0;
    bool ambiguous = false, doubtful = false;  // another op could claim it; a map changed or events are lost
    // Of its request, once that is done.
    std::int64_t issue_ns = kNoTime, complete_ns = kNoTime;
    bool request_ambiguous = false;
};

// Bytes of a file, or of a raw device's user: no journal, no inode.
inline bool is_data(const Bio &bio) {
    return bio.nr_sectors > 0 && bio.sector != kNoSector && (bio.rwbs & rwbs::kMeta) == 0;
}
// Without data: whoever queues it waits for it (blkdev_issue_flush()).
inline bool is_flush(const Bio &bio) { return bio.nr_sectors == 0 && (bio.rwbs & rwbs::kPreflush) != 0; }
inline bool is_write(const Bio &bio) { return bio.kind == IoKind::kWrite || bio.kind == IoKind::kWriteZeroes; }

struct LinkCounts {
    std::uint64_t refused = 0,  // links that can't be: the request came, or went on, after its op's end
        elsewhere = 0;          // bios outside the bytes of the op that their thread seemed to work for
    std::uint64_t agree = 0, differ = 0, thread_only = 0, sector_only = 0, neither = 0, ambiguous = 0,
                  batch = 0,    // a batch's or a journal's: no one op is to be found
        page = 0;               // written back for those that wrote its pages
    std::uint64_t extents = 0;  // of all of them, those in a mapped file
};

// A row of the table links: the op waited for the bio.
struct LinkRow {
    std::uint64_t op = 0;  // serial
    std::uint32_t rules = 0;
    std::uint64_t bytes = 0;  // 0: not known
    bool shared = false, ambiguous = false, doubtful = false;
};

// A row of the table deferred: the op's data reached the disk outside its latency.
struct DeferredRow {
    std::uint64_t op = 0;  // serial
    std::uint64_t bytes = 0;
    std::int64_t written_ns = 0;
    bool shared = false, ambiguous = false, doubtful = false;
};

// A flush that the block layer issued for all that wait for it: each of them has a request of its own (Q, G, C).
struct Flush {
    std::uint64_t request = 0;
    std::int64_t issue_ns = kNoTime;
    std::int32_t issue_tid = -1;
};

// The ops that a request serves.
struct Served {
    std::uint32_t ops = 0;
    std::uint64_t only = 0;  // op_ref(), where it is exactly one and known
};

class Linker {
  public:
    Linker(Stitcher &, const Plan &, StringPool &);

    Owner bio_queued(const BlockEvent &, const Bio &, std::uint32_t host);
    // A remap, before the block model sees it: a partition's says where in it the bio lies that is queued next.
    void remapped(const BlockEvent &);
    // The request is done: every op in memory that waits for one of its bios gets the cut.
    Served request_done(const Request &);
    // When the op has ended for good; kNoTime: it has not, as far as is known. Then that of one that waits for a
    // request.
    std::int64_t end_of(std::uint64_t ref) const;
    std::int64_t waiter_ended(const Request &) const;
    // The bio is done, after its request: the rows that it makes, valid until the next call.
    const std::vector<LinkRow> &links(const Bio &);
    const std::vector<DeferredRow> &deferred(const Bio &);
    // The op is final, and leaves memory.
    void settled(const Op &);
    // When its request was done, or (of a bio-based device) itself; kNoTime: not seen.
    std::int64_t done_ns(const Bio &) const;
    void forget(std::uint64_t bio_id);

    // From the stitcher.
    void wrote(Op &, std::int64_t at_ns);
    void sync_begun(Op &, std::int64_t tid, std::int64_t at_ns);
    // nullptr: the op was in none.
    std::shared_ptr<Sync> sync_ended(Op &, std::int64_t at_ns);
    void discarded(std::int64_t begin_ns, std::int64_t end_ns);
    bool lost_between(std::int64_t begin_ns, std::int64_t end_ns) const;
    // Nobody waits for the request but its owners: no batch, no sync, nobody who wrote its pages.
    bool waiters_known(const Request &) const;
    // Its completion is missing: it may be another one's steps that were seen.
    void doubt(const Request &);
    bool lost_between(const BioLink &, const Request &) const;  // from the first step that is known to the last

    // Why nothing is linked to an op (docs/losses.md), where the trace has block events; the op is about to be settled.
    const char *no_request(const Op &);

    // The flush whose D is the request's too; nullptr: it has one of its own, or none is known.
    const Flush *flush_of(const Request &) const;
    // nullptr: the linker never saw the bio queued.
    const BioLink *link_of(std::uint64_t bio_id) const { return recent_id_ == bio_id ? recent_ : links_.find(bio_id); }
    const std::string &file_of(const BioLink &link) const { return maps_.path(link.shared->file); }
    const LinkCounts &counts() const { return counts_; }
    std::uint64_t evicted_pages() const { return pages_.evicted(); }
    std::uint64_t evicted_writes() const { return syncs_.evicted(); }

  private:
    struct Remap {
        Sectors to;
        std::uint32_t dev = 0;
        std::uint64_t sector = 0;
    };
    // Of the batches of a kind: of how many requests they waited for the end before they closed.
    struct BatchWaits {
        std::uint64_t waited = 0, went_on = 0;
        void note(std::int64_t done_ns, std::int64_t closed_ns) {
            ++(closed_ns == kNoTime || done_ns <= closed_ns ? waited : went_on);
        }
        bool nearly_always() const { return waited >= 8 && waited >= 8 * went_on; }
    };
    struct WaitingBio {  // for a request
        std::uint64_t op;
        std::int64_t q, floor_ns;
    };
    BioLink *find_link(std::uint64_t bio_id) {
        if (recent_id_ != bio_id) {
            BioLink *link = links_.find(bio_id);
            if (!link) return nullptr;
            recent_id_ = bio_id;
            recent_ = link;
        }
        return recent_;
    }
    Owner inherit(const Bio &, BioLink &);
    Sectors within_partition(const BlockEvent &, const Sectors &);
    Target &target_of(const Op &);
    // The map that the op is known to work on; kNoFile: any.
    std::uint32_t file_of(std::uint64_t ref) {
        const Op *op = stitcher_.ops().find(ref);
        return op ? target_of(*op).file : kNoFile;
    }
    enum class Overlap : std::uint8_t { kNone, kPart, kInside };
    Direction direction_of(const Op &);
    bool right_way(const Op &, const Bio &);
    // Of a file whole pages reach the disk.
    static std::uint64_t bytes_in_flight(const Op &);
    Overlap overlap(const Op &op, const Sectors &within) { return overlap(op, target_of(op).file, within); }
    Overlap overlap(const Op &, std::uint32_t file, const Sectors &within);
    void find_in_flight(const Bio &, const Sectors &within, BioLink &);
    bool outside(const Bio &, const Sectors &within, Op &, BioLink &);
    void learn_amount(Op &);
    bool impossible(const BioLink &, std::int64_t getrq_ns, std::int64_t complete_ns) const;
    void check(BioLink &, std::int64_t getrq_ns, std::int64_t complete_ns);
    void supersede_commits(const Bio &);
    // Syncs don't wait for them any longer.
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
    void postpone(BioLink &);
    bool works_for_all(std::uint32_t host, std::int64_t tid);
    bool pages_have_owner() const;
    void choose(const BlockEvent &, const Bio &, const Sectors &within, Op *thread_op, BioLink &);
    Op *writes_page(const Bio &, std::uint32_t file, std::uint64_t page, std::uint32_t &writers);
    void share_pages(const Bio &, const Sectors &within, BioLink &);
    void share_sync(const Bio &, const Sectors &within, BioLink &);
    void count(const BioLink &);
    std::uint64_t bytes_in(const Op &, const Sectors &within);
    void wait_for_read_ahead(BioLink &, const Request &);
    std::uint32_t distinct_ops(std::vector<const Sync *> &);
    void wait_for(std::uint64_t op, std::int64_t q, std::int64_t floor_ns);
    std::int64_t waiter_ended(const BioLink &) const;
    RequestCut cut_of(const Request &) const;
    std::int64_t queued_for(const Batch &, const Request &);
    bool is_journal(const Bio &);
    bool passed_io(const Op &) const;
    SharedWork &shared(BioLink &);
    std::uint64_t serial(std::uint64_t ref) const {
        const Op *op = stitcher_.ops().find(ref);
        return op ? op->serial : serial_of(ref);
    }
    static bool waits(const Op *op) { return op && op->sync_ns != kNoTime; }

    Stitcher &stitcher_;
    StringPool &strings_;
    FileMaps maps_;
    PageOwners pages_;
    SyncWork syncs_;
    Targets targets_;
    const bool has_syncs_;         // the model names some
    std::vector<bool> io_points_;  // by point: it has `io`; empty: none has
    bool io_seen_ = false;         // an op passed one
    std::uint32_t sync_space_;
    FlatMap<std::int32_t, Remap> remaps_;                 // per thread, the last
    FlatMap<std::uint32_t, Direction> class_directions_;  // by pool id
    std::uint32_t recent_class_ = ~0u;
    Direction recent_direction_ = Direction::kUnknown;  // its
    FlatMap<std::uint32_t, bool> kernel_comms_;         // pool id of a comm → a kernel thread's that writes a journal
    std::vector<std::uint64_t> sync_bios_;              // open bios that a sync waits for
    std::vector<std::pair<std::int64_t, std::int64_t>> lost_;  // [begin, end], by end
    std::array<Flush, 256> flushes_{};                         // the last ones
    std::size_t next_flush_ = 0;
    FlatMap<std::uint64_t, BioLink> links_;           // bios that are open
    FlatMap<std::uint64_t, std::int64_t> ends_;       // of ops that were settled while bios of theirs may be open
    std::uint64_t recent_id_ = 0;                     // the bio that was asked for last; 0: none
    BioLink *recent_ = nullptr;                       // its
    std::vector<MappedPart> parts_;                   // of the bio at hand
    FlatMap<std::uint32_t, BatchWaits> batch_waits_;  // by their space
    std::vector<LinkRow> link_rows_;
    std::vector<DeferredRow> deferred_rows_;
    std::vector<WaitingBio> waiting_;
    std::vector<std::uint64_t> served_;
    LinkCounts counts_;
};

}  // namespace opline
