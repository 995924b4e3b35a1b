// SPDX-License-Identifier: MIT
// Shared by the parts of the linker: ops, maps of files, processes, counts, lost intervals; and the answers of the
// rules for a bio.
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

// Part of a bio last written by an op.
struct PageShare {
    std::uint64_t op = 0;  // op_ref()
    std::uint64_t bytes = 0;
    std::int64_t written_ns = 0;
    std::uint64_t first = 0, last = 0;  // sectors of the bio's device, [first, last)
    bool ambiguous = false;
};

// Work of a bio for ops besides its owner.
struct SharedWork {
    std::vector<PageShare> pages;
    std::vector<std::shared_ptr<Sync>> syncs;  // syncs waiting for the bio
    std::uint32_t file = kNoFile;
    // (op, bytes): ops waiting for pages of the bio, of read-ahead or of write-back
    std::vector<std::pair<std::uint64_t, std::uint64_t>> page_waiters;
};

// Answers of the rules for one bio. References are op_ref()s; 0: none.
struct BioLink {
    std::uint64_t by_thread = 0, by_sector = 0, by_extent = 0, chosen = 0;
    std::uint32_t candidates = 0;  // ops in flight on the bio's sectors
    bool own_place = false;        // the thread's op is a candidate
    std::uint32_t rules = 0;       // rules for `chosen`
    std::shared_ptr<Batch> batch;  // declared by the model
    std::shared_ptr<Sync> sync;    // the sync of the queueing thread
    std::unique_ptr<SharedWork> shared;
    std::uint64_t own_bytes = 0;    // of `chosen`; 0: unknown
    std::uint32_t program_run = 0;  // Population::run_of() the process of the queued (or original) bio
    std::int64_t queue_ns = kNoTime;
    Queuer queuer;
    bool pages_owned = false;       // an op wrote pages of the bio not on the disk yet
    bool journal = false;           // of a journal: serves the open syncs
    bool commit = false;            // of a journal, after its earlier writes are done
    std::int32_t journal_tid = -1;  // the journal's thread
    bool inherited = false;         // remapped or split from a bio already judged by the rules
    bool others = false;            // serves further ops, known or unknown
    bool other_process = false;     // a number leads to an op of another process
    bool waited_for = false;        // `chosen` goes on only after the bio
    // `chosen` has these bytes in flight, and another thread wrote the pages: `chosen` may not wait
    bool dirtied = false;
    // For read-ahead: the device, and the distance to the request's place in sectors.
    bool read_ahead = false;
    std::uint32_t read_ahead_dev = 0;
    std::uint64_t read_ahead_shift = 0;
    bool ambiguous = false, doubtful = false;  // another op is possible; a map changed or events are lost
    // Facts of the request, after the request's end.
    std::int64_t issue_ns = kNoTime, complete_ns = kNoTime;
    bool request_ambiguous = false;
    CompletionBy completion_by = CompletionBy::kMatch;
};

// Bytes of a file, or of a raw device's user: no journal, no inode.
inline bool is_data(const Bio &bio) {
    return bio.nr_sectors > 0 && bio.sector != kNoSector && (bio.rwbs & rwbs::kMeta) == 0;
}
// Without data: the queueing thread waits for the flush (blkdev_issue_flush()).
inline bool is_flush(const Bio &bio) { return bio.nr_sectors == 0 && (bio.rwbs & rwbs::kPreflush) != 0; }
inline bool is_write(const Bio &bio) { return bio.kind == IoKind::kWrite || bio.kind == IoKind::kWriteZeroes; }

struct LinkCounts {
    std::uint64_t refused = 0,   // impossible links: the request came, or went on, after the op's end
        elsewhere = 0,           // bios outside the bytes of the thread's op
        other_process = 0,       // bios of another process than the op's process, with the same number
        process_violations = 0;  // links against the rule of processes: a fault
    std::uint64_t agree = 0, differ = 0, thread_only = 0, sector_only = 0, neither = 0, ambiguous = 0,
                  batch = 0,    // of a batch or a journal, without a single op
        page = 0;               // write-back for the writers of the pages
    std::uint64_t extents = 0;  // bios in a mapped file, of all
};

// A row of the table links: the op waited for the bio.
struct LinkRow {
    std::uint64_t op = 0;  // serial
    std::uint32_t rules = 0;
    std::uint64_t bytes = 0;  // 0: unknown
    bool shared = false, ambiguous = false, doubtful = false;
    CompletionBy completion_by = CompletionBy::kMatch;
    std::uint64_t ref = 0;  // of the op, among unsettled ops
};

// A row of the table deferred: the op's data reached the disk outside its latency.
struct DeferredRow {
    std::uint64_t op = 0;  // serial
    std::uint64_t bytes = 0;
    std::int64_t written_ns = 0;
    bool shared = false, ambiguous = false, doubtful = false;
};

// A flush of the block layer for all its waiters. Each waiter has a request of its own (Q, G, C).
struct Flush {
    std::uint64_t request = 0;
    std::int64_t issue_ns = kNoTime;
    std::int32_t issue_tid = -1;
};

// The ops that a request serves.
struct Served {
    std::uint32_t ops = 0;
    std::uint64_t only = 0;      // op_ref() of the only op, if known
    bool of_population = false;  // a recorded program queued one of the bios, or owns one of the ops
};

struct Linking {
    OpLocator &locator;
    StringPool &strings;
    FileMaps maps;
    Processes processes;
    std::vector<bool> io_points;  // by point: has `io`; empty: no point has
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
