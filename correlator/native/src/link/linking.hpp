// SPDX-License-Identifier: MIT
// What the parts of the linker share: ops, maps of files, processes, counts, lost intervals; and what they say of a
// bio.
#pragma once
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/lost_intervals.hpp"
#include "block/block.hpp"
#include "link/confidence.hpp"
#include "link/file_maps.hpp"
#include "link/processes.hpp"
#include "link/sync_work.hpp"
#include "stitch/op_locator.hpp"

namespace opline {

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
    // (op, bytes): ops that wait for pages of it: for its read-ahead, or that they are written back
    std::vector<std::pair<std::uint64_t, std::uint64_t>> page_waiters;
};

// What the rules said of one bio. References are op_ref()s; 0: nobody.
struct BioLink {
    std::uint64_t by_thread = 0, by_sector = 0, by_extent = 0, chosen = 0;
    std::uint32_t candidates = 0;  // ops in flight on its sectors
    bool own_place = false;        // that of its thread is one of them
    std::uint32_t rules = 0;       // that speak for `chosen`
    std::shared_ptr<Batch> batch;  // declared by the model
    std::shared_ptr<Sync> sync;    // in which its thread was
    std::unique_ptr<SharedWork> shared;
    std::uint64_t own_bytes = 0;    // of `chosen`; 0: not known
    std::uint32_t program_run = 0;  // Population::run_of() the process that queued it, or what it was made of
    std::int64_t queue_ns = kNoTime;
    Queuer queuer;
    bool pages_owned = false;       // some op wrote pages of it that were not on the disk yet
    bool journal = false;           // of a journal: for the syncs that are open
    bool commit = false;            // of a journal, and what that wrote before was done
    std::int32_t journal_tid = -1;  // who writes the journal
    bool inherited = false;         // it was remapped or split from another, which the rules were asked about
    bool others = false;            // it serves further ops, known or not
    bool other_process = false;     // a number spoke for an op that the process contradicts
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
    CompletionBy completion_by = CompletionBy::kMatch;
};

// Bytes of a file, or of a raw device's user: no journal, no inode.
inline bool is_data(const Bio &bio) {
    return bio.nr_sectors > 0 && bio.sector != kNoSector && (bio.rwbs & rwbs::kMeta) == 0;
}
// Without data: whoever queues it waits for it (blkdev_issue_flush()).
inline bool is_flush(const Bio &bio) { return bio.nr_sectors == 0 && (bio.rwbs & rwbs::kPreflush) != 0; }
inline bool is_write(const Bio &bio) { return bio.kind == IoKind::kWrite || bio.kind == IoKind::kWriteZeroes; }

struct LinkCounts {
    std::uint64_t refused = 0,   // links that can't be: the request came, or went on, after its op's end
        elsewhere = 0,           // bios outside the bytes of the op that their thread seemed to work for
        other_process = 0,       // bios that only a number would give to an op: their process is another one
        process_violations = 0;  // links all the same: a fault
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
    CompletionBy completion_by = CompletionBy::kMatch;
    std::uint64_t ref = 0;  // of the op, in the table of those that are not settled
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
    std::uint64_t only = 0;      // op_ref(), where it is exactly one and known
    bool of_population = false;  // a recorded program queued one of its bios, or one of these ops is its
};

struct Linking {
    OpLocator &locator;
    StringPool &strings;
    FileMaps maps;
    Processes processes;
    std::vector<bool> io_points;  // by point: it has `io`; empty: none has
    LinkCounts counts;
    LostIntervals lost;
};

inline SharedWork &shared_work(BioLink &link) {
    if (!link.shared) link.shared = std::make_unique<SharedWork>();
    return *link.shared;
}
// The op is in a sync.
inline bool waits(const Op *op) { return op && op->sync_ns != kNoTime; }

}  // namespace opline
