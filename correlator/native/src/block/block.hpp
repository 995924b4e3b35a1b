// SPDX-License-Identifier: MIT
// The block model: one state machine per request, from Q to C. Knows nothing of ops: an Owner is an opaque
// reference that the linker puts on a bio when it is queued, and that the requests made of it keep.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "event/event.hpp"
#include "event/ledger.hpp"

namespace opline {

// LTTng's names without "block_", with blkparse's letter.
enum class BlockKind : std::uint8_t {
    kBioQueue,       // Q
    kBioRemap,       // A
    kSplit,          // X
    kGetRq,          // G
    kBioBackmerge,   // M
    kBioFrontmerge,  // F
    kRqMerge,        // absorbed by another request
    kPlug,           // P
    kUnplug,         // U
    kRqInsert,       // I
    kRqIssue,        // D
    kRqRequeue,      // R
    kRqRemap,        // request-based remap
    kRqComplete,     // C
    kBioComplete,    // C of a bio-based device
    kBioBounce,
    kRqError,  // lttng-modules >= 2.14: follows a completion with an error
    kRqBio,    // BPF collector: a further bio of the request issued just before (rq, bio)
    kOther     // touch_buffer, dirty_buffer, io_start, io_done …
};

enum class IoKind : std::uint8_t {
    kRead,
    kWrite,
    kDiscard,
    kWriteZeroes,
    kFlush,
    kOther,
    kZoneReset,
    kZoneResetAll,
    kZoneFinish,
    kZoneOpen,
    kZoneClose
};
constexpr std::size_t kIoKinds = 11;

// "read", "write", "discard", "write_zeroes", "flush", "other", "zone_reset" …
std::string_view io_kind_name(IoKind);

// rwbs, as LTTng's kernel domain writes it (lttng-modules 2.13, include/instrumentation/events/block.h).
namespace rwbs {
constexpr std::uint32_t kWrite = 1, kDiscard = 2, kRead = 4, kRahead = 8, kBarrier = 16, kSync = 32, kMeta = 64,
                        kSecure = 128, kFlush = 256, kFua = 512, kPreflush = 1024;
// Operations missing in LTTng's mask; from letters only.
constexpr std::uint32_t kWriteZeroes = 2048, kAtomic = 4096, kZone = 7u << 13, kZoneAppend = 1u << 13,
                        kZoneReset = 2u << 13, kZoneResetAll = 3u << 13, kZoneFinish = 4u << 13, kZoneOpen = 5u << 13,
                        kZoneClose = 6u << 13;
// A flush, or a write with a flush before or after: takes the way of the flush machinery.
constexpr bool of_flush(std::uint32_t bits) { return (bits & (kFlush | kFua | kPreflush)) != 0; }
}  // namespace rwbs

constexpr std::uint32_t kNoQueue = ~std::uint32_t{0};
constexpr std::uint64_t kNoSector = ~std::uint64_t{0};  // a flush's completion in LTTng's events

struct BlockEvent {
    BlockKind kind;
    std::int64_t ts_ns;
    std::uint32_t cpu;
    std::int32_t tid;      // the event's own tid, else the context's; -1 unknown
    std::int32_t pid;      // of the queueing thread; -1 unknown
    std::uint32_t comm;    // interned; 0 unknown
    std::uint32_t dev;     // kernel-internal: major << 20 | minor
    std::uint64_t sector;  // 512-byte units
    std::uint32_t nr_sectors;
    std::uint32_t rwbs;
    std::int32_t error;     // 0 fine
    std::uint32_t old_dev;  // remap: from
    std::uint64_t old_sector;
    std::uint64_t new_sector;        // split: where the remainder begins
    std::uint64_t rq;                // request pointer; 0: the capture has none
    std::uint64_t bio;               // bio pointer; 0: none
    std::uint64_t parent;            // split clone's bi_private, BPF captures; 0: none
    std::uint32_t queue = kNoQueue;  // number of the request's hardware queue; kNoQueue: not captured
    // For a request in a flush sequence: the finished steps (REQ_FSEQ_* of block/blk-flush.c, BPF captures).
    std::int32_t flush_seq = -1;
    std::uint64_t cgroup_number = 0;  // of a queued bio, BPF captures; 0: unknown
    std::uint32_t cgroup = 0;         // path of the cgroup, interned; 0 unknown
    std::int32_t kthread = -1;        // 1: a kernel thread queues the bio; 0: a thread of a process; -1 unknown
};

struct Owner {                // opaque to the block model
    std::uint64_t op = 0;     // op serial + 1; 0: no op
    std::uint64_t batch = 0;  // batch serial + 1; 0: none
    explicit operator bool() const { return op != 0 || batch != 0; }
};

struct Bio {
    std::uint64_t id = 0;       // ordinal, from 1, in order of Q
    std::uint64_t request = 0;  // Request::id once known; 0: none (yet)
    std::uint32_t dev = 0;
    std::uint64_t sector = 0;
    std::uint32_t nr_sectors = 0;
    std::uint32_t rwbs = 0;
    IoKind kind = IoKind::kOther;
    std::int64_t queue_ns = kNoTime;     // kNoTime: without a Q (split remainder, before the trace)
    std::int64_t since_ns = kNoTime;     // Q, else Q of the bio before the cut or remap
    std::int64_t getrq_ns = kNoTime;     // G, if the bio has its own request
    std::int64_t complete_ns = kNoTime;  // of a bio-based device's own bio
    std::int32_t tid = -1, pid = -1;
    std::uint32_t comm = 0, cgroup = 0;
    std::uint64_t pointer = 0;
    std::uint64_t parent = 0;      // Bio::id of the remapped or split bio; 0: none
    std::uint64_t split_from = 0;  // Bio::id, if the bio is a split's remainder; 0: none
    bool merged = false;
    std::int64_t merge_ns = kNoTime;  // M or F: when the bio joined a request
    Owner owner;
};

// Proof that a completion belongs to a request. kMatch: no other request fits. kOrder: later events (a wake-up on the
// completion's CPU, or the end of an op). kTwo: the wake-up, and by the times no other completion fits.
enum class CompletionBy : std::uint8_t { kMatch, kOrder, kTwo };

struct RequestState {
    std::uint64_t id = 0;  // ordinal, from 1, in order of first sight
    std::uint32_t dev = 0;
    std::uint64_t sector = 0;  // as issued; kNoSector for a flush
    std::uint32_t nr_sectors = 0;
    std::uint32_t rwbs = 0;  // of the first bio, with the FUA and PREFLUSH bits missing at the issue
    IoKind kind = IoKind::kOther;
    std::int64_t queue_ns = kNoTime;  // Bio::since_ns of the first bio
    std::int64_t getrq_ns = kNoTime;
    // For a split's remainder: the first part's request, and the time of its allocation.
    std::uint64_t first_request = 0;
    std::int64_t first_getrq_ns = kNoTime;
    std::int64_t preflush_ns = kNoTime;     // end of the flush before the data
    std::int64_t insert_ns = kNoTime;       // absent with scheduler `none`: never made up
    std::int64_t issue_ns = kNoTime;        // the last D: device time
    std::int64_t first_issue_ns = kNoTime;  // the first D: queueing
    std::int64_t complete_ns = kNoTime;     // the sectors are done: for a write with two completions, the first
    std::int64_t end_ns = kNoTime;          // the bios are done: the second completion, else complete_ns
    std::int32_t queue_tid = -1, issue_tid = -1;
    std::uint32_t queue_comm = 0, issue_comm = 0;
    std::uint32_t cgroup = 0;  // pool id of the first bio's path
    std::uint32_t queue_cpu = kNoCpu, issue_cpu = kNoCpu, complete_cpu = kNoCpu;
    std::int32_t error = 0;
    std::uint32_t requeues = 0, merges = 0;
    bool in_flight_known = true;
    std::uint32_t in_flight = 0;  // other requests of the device between D and C at the first D
    std::uint64_t pointer = 0;
    std::uint64_t absorbed_by = 0;  // Request::id, after rq_merge: the bios moved to this request
    // Request::id of the last flush waited for. The flush lists the bios of its waiters, but each bio keeps its own
    // request
    std::uint64_t flushed_by = 0;
    bool ambiguous = false;  // a step fits another request as well
    CompletionBy completion_by = CompletionBy::kMatch;
    bool reused = false;  // closed because the pointer came back: the completion is missing
    bool unseen = false;  // no program of the collector saw the completion: no record is lost
};

struct Request : RequestState {
    std::vector<std::uint64_t> bios;  // Bio::id, first to last
    std::vector<Owner> owners;        // distinct, in order
};

// Whether an op, a sync or a batch is known to wait for a request, and the end of the wait: the request was done by
// then. kNoTime: no known end. `ends_with_it`: only the request's completion tells the end of the op.
struct Waiter {
    bool known = false, ends_with_it = false;
    std::int64_t ended_ns = kNoTime;
};

// How often two independent rules agree, per hop. `pointer_only` and `sector_only`: only one rule had an answer.
struct HopAgreement {
    std::uint64_t agree = 0, differ = 0, pointer_only = 0, sector_only = 0, neither = 0, ambiguous = 0;
};

// Unmatched: the event's bio or request is unknown. A request first seen at its getrq or issue is kept from then on
// (without earlier steps). The issue of a request without sectors (pass-through) begins the request: no loss.
struct BlockCounts {
    HopAgreement bio_to_request, request_to_issue, request_to_complete;
    std::uint64_t unmatched_getrq = 0, unmatched_merge = 0, unmatched_issue = 0, unmatched_complete = 0,
                  unmatched_requeue = 0, second_completions = 0, incomplete_at_end = 0, pointer_reuse = 0, evicted = 0;
    std::uint64_t unmatched_insert = 0, unmatched_split = 0, unmatched_bio_complete = 0, unmatched_rq_bio = 0;
    std::uint64_t front_merges = 0, back_merges = 0, rq_merges = 0, splits = 0, remaps = 0, requeues = 0, issues = 0,
                  completions = 0, partial_completions = 0, flushes = 0;
    std::uint64_t size_differs = 0;  // issued with a length different from the sum of the bios: a merge is missing
    std::uint64_t lost_bios = 0;     // bios that reached neither a request nor another device
    std::uint64_t incomplete_devices = 0;   // devices with many missing completions
    std::uint64_t presumed_lost = 0;        // open requests given up: too many later requests of the device completed
    std::uint64_t interval_violations = 0;  // steps before their preceding step: left out
    std::uint64_t failed = 0;               // completed with an error
    std::uint64_t completions_unseen = 0;   // of requests of numbered events: see BlockModel::numbered
    std::uint64_t corrected_merges = 0;     // merged bios that kRqBio moved to another request
    std::uint64_t queues_assumed = 0;       // devices with flushes and without known hardware queues

    void add(const BlockCounts &);  // adds the counts of another host
};

enum class BlockMatch : std::uint8_t {
    kPointer,  // by pointers if events have pointers, else by sectors; a second matcher by sectors counts the agreement
    kSector    // pointers hidden: for traces without pointers, and to check the sector rules
};

// A recording's facts about a device (/sys/block/DEV).
struct DeviceFacts {
    std::vector<std::vector<std::uint32_t>> queues;  // mq/N/cpu_list: CPUs of each hardware queue, by queue number
    std::optional<bool> fua;  // queue/fua: the device takes FUA writes, so no flush follows such a write
};

// Shared by the models of several hosts.
struct BlockShared {
    std::uint64_t bio = 0, request = 0;  // the last numbers given
    std::uint64_t undecided = 0;         // completions not assigned yet
    bool has_wakes = false;              // the traces have sched_waking
};

class BlockModel {
  public:
    struct Hooks {
        // A bio was queued: returns the owner. Called once per Bio, before any other use. A remapped or split bio comes
        // with the parent's owner, and keeps this owner if the answer is empty. Split remainders have no queue_ns;
        // their event is the split.
        std::function<Owner(const BlockEvent &, const Bio &)> bio_queued;
        // The request is finished: completed, absorbed, reused, or open at the end (complete_ns absent). Comes before
        // bio_done of the request's bios.
        std::function<void(const Request &)> request_done;
        // The bio is finished: its request is known, or will never be known.
        std::function<void(const Bio &)> bio_done;
        // A step in this interval is missing in the trace. `of`: the missing step is the completion of this request,
        // and the other steps are known; nullptr: unknown whose step.
        std::function<void(const Request *of, std::uint32_t dev, std::int64_t begin_ns, std::int64_t end_ns)> missed;
        // Who waits for the request.
        std::function<Waiter(const Request &)> waiter;
        // When the owner's op has ended; kNoTime likewise.
        std::function<std::int64_t(const Owner &)> owner_ended;
    };

    // `shared`: common state of several models, which outlives the model; nullptr: the model's own.
    BlockModel(BlockMatch match, Hooks hooks, BlockShared *shared = nullptr);
    ~BlockModel();
    BlockModel(const BlockModel &) = delete;
    BlockModel &operator=(const BlockModel &) = delete;

    // Apply one event. kRequestStep if the request or bio has an owner, kBackground if not, kContext (plug),
    // kOrphanRequest without a known request or bio, kIgnored for kOther. A partition's remap is kContext: the bio is
    // queued later.
    Fate event(const BlockEvent &);
    // The collector numbers its block events: a lost record leaves a hole in the numbers. A completion missing without
    // a hole was never recorded: the kernel ran no program for the event (docs/internals/collectors.md).
    void numbered();
    void know(std::uint32_t dev, const DeviceFacts &);
    // From now on events are steps of whole requests, in order and with the requests' pointers: nothing to compare.
    void whole();
    // The same for an event about no bio and no request (kPlug, kUnplug): time goes on.
    void passed(std::int64_t ts_ns);
    // sched_waking: a thread is woken on the CPU. Among requests of one place, the last completion on the CPU belongs
    // to the thread's request.
    void woken(std::int32_t tid, std::uint32_t cpu, std::int64_t ts_ns);
    // An op with this begin and end is about to settle: decides now about the completions that the op waited for.
    void decide(std::int64_t begin_ns, std::int64_t end_ns, std::int64_t now_ns);
    // End of the trace: everything open is reported through the hooks.
    void finish();
    const BlockCounts &counts() const;
    std::size_t open_requests() const;
    std::size_t open_bios() const;
    // The open requests, as far as known, in order of first sight.
    void each_open(const std::function<void(const Request &)> &) const;

    static IoKind kind_of(std::uint32_t rwbs, std::uint32_t nr_sectors);
    // blkparse letters, as written by the kernel's own tracepoints (perf, ftrace) ("FWFSM") → the bit mask.
    static std::uint32_t rwbs_by_letters(std::string_view letters);
    static std::string rwbs_letters(std::uint32_t rwbs);
    // "block_rq_issue" or "block:block_rq_issue" → kRqIssue; anything else: kOther.
    static BlockKind kind_by_name(std::string_view event_name);

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace opline
