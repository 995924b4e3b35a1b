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

// LTTng's names, without "block_"; blkparse's letter beside it.
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
    kRqBio,    // BPF collector: a further bio of the request that was just issued (rq, bio)
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
// Operations that LTTng's mask does not have; from letters only.
constexpr std::uint32_t kWriteZeroes = 2048, kAtomic = 4096, kZone = 7u << 13, kZoneAppend = 1u << 13,
                        kZoneReset = 2u << 13, kZoneResetAll = 3u << 13, kZoneFinish = 4u << 13, kZoneOpen = 5u << 13,
                        kZoneClose = 6u << 13;
// It is a flush, or needs one before or behind: it goes by its own queue.
constexpr bool of_flush(std::uint32_t bits) { return (bits & (kFlush | kFua | kPreflush)) != 0; }
}  // namespace rwbs

constexpr std::uint32_t kNoQueue = ~std::uint32_t{0};
constexpr std::uint64_t kNoSector = ~std::uint64_t{0};  // a flush's completion in LTTng's events

struct BlockEvent {
    BlockKind kind;
    std::int64_t ts_ns;
    std::uint32_t cpu;
    std::int32_t tid;      // the event's own tid, else the context's; -1 unknown
    std::int32_t pid;      // of the thread that queues a bio; -1 unknown
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
    std::uint32_t queue = kNoQueue;  // of a request: the number of its hardware queue; kNoQueue: the capture has none
    // Of a request in a flush sequence: the steps that are done (REQ_FSEQ_* of block/blk-flush.c, BPF captures).
    std::int32_t flush_seq = -1;
    std::uint64_t cgroup_number = 0;  // of a bio that is queued, BPF captures; 0: unknown
    std::uint32_t cgroup = 0;         // its path, interned; 0 unknown
    std::int32_t kthread = -1;        // 1: the thread that queues a bio is the kernel's own; 0: a process'; -1 unknown
};

struct Owner {                // opaque to the block model
    std::uint64_t op = 0;     // op serial + 1; 0: nobody
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
    std::int64_t queue_ns = kNoTime;     // kNoTime: its Q was not seen (split remainder, before the trace)
    std::int64_t since_ns = kNoTime;     // Q, else that of the bio that it was cut from or remapped from
    std::int64_t getrq_ns = kNoTime;     // G of a request of its own
    std::int64_t complete_ns = kNoTime;  // of a bio-based device's own bio
    std::int32_t tid = -1, pid = -1;
    std::uint32_t comm = 0, cgroup = 0;
    std::uint64_t pointer = 0;
    std::uint64_t parent = 0;      // Bio::id that it was remapped or split from; 0: none
    std::uint64_t split_from = 0;  // Bio::id whose remainder it is; 0: none
    bool merged = false;
    std::int64_t merge_ns = kNoTime;  // M or F: when it joined a request
    Owner owner;
};

// What says that a completion is a request's own. kMatch: no other request fits it. kOrder: what goes on behind it: a
// wake-up on its CPU, or the end of an op. kTwo: the wake-up, and by the times alone no other completion can be its.
enum class CompletionBy : std::uint8_t { kMatch, kOrder, kTwo };

struct RequestState {
    std::uint64_t id = 0;  // ordinal, from 1, in order of first sight
    std::uint32_t dev = 0;
    std::uint64_t sector = 0;  // as issued; kNoSector for a flush
    std::uint32_t nr_sectors = 0;
    std::uint32_t rwbs = 0;  // of its first bio, with the FUA and PREFLUSH bits that the issue loses
    IoKind kind = IoKind::kOther;
    std::int64_t queue_ns = kNoTime;  // Bio::since_ns of its first bio
    std::int64_t getrq_ns = kNoTime;
    // Of a split's remainder: the request of the first part, and when it was allocated.
    std::uint64_t first_request = 0;
    std::int64_t first_getrq_ns = kNoTime;
    std::int64_t preflush_ns = kNoTime;     // the flush before its data was done
    std::int64_t insert_ns = kNoTime;       // absent with scheduler `none`: never made up
    std::int64_t issue_ns = kNoTime;        // the last D: device time
    std::int64_t first_issue_ns = kNoTime;  // the first D: queueing
    std::int64_t complete_ns = kNoTime;     // its sectors are done: of a write that completes twice, the first
    std::int64_t end_ns = kNoTime;          // its bios are done: the second completion, else complete_ns
    std::int32_t queue_tid = -1, issue_tid = -1;
    std::uint32_t queue_comm = 0, issue_comm = 0;
    std::uint32_t cgroup = 0;  // pool id of the path: of its first bio
    std::uint32_t queue_cpu = kNoCpu, issue_cpu = kNoCpu, complete_cpu = kNoCpu;
    std::int32_t error = 0;
    std::uint32_t requeues = 0, merges = 0;
    bool in_flight_known = true;
    std::uint32_t in_flight = 0;  // requests of this device between D and C at this one's first D, itself excluded
    std::uint64_t pointer = 0;
    std::uint64_t absorbed_by = 0;  // Request::id, after rq_merge: its bios are the other's now
    std::uint64_t flushed_by = 0;   // Request::id of the last flush that it waited for. The flush lists the bios that
                                    // wait for it, but each bio's own request is the one that it was made into
    bool ambiguous = false;         // a step could have belonged to another request as well
    CompletionBy completion_by = CompletionBy::kMatch;
    bool reused = false;  // closed because its pointer came back: its completion is missing
    bool unseen = false;  // no program of the collector saw its completion: no record of it is lost
};

struct Request : RequestState {
    std::vector<std::uint64_t> bios;  // Bio::id, first to last
    std::vector<Owner> owners;        // distinct, in order
};

// Whether an op, a sync or a batch is known to wait for a request, and when that ended: the request was done by then.
// kNoTime: it has not ended, as far as is known.
// `ends_with_it`: nothing but its completion says when the op ends.
struct Waiter {
    bool known = false, ends_with_it = false;
    std::int64_t ended_ns = kNoTime;
};

// How often two independent rules agree, per hop. `pointer_only` and `sector_only`: only one rule had an answer.
struct HopAgreement {
    std::uint64_t agree = 0, differ = 0, pointer_only = 0, sector_only = 0, neither = 0, ambiguous = 0;
};

// Unmatched: the event's bio or request is not known. A request that is first seen at its getrq or issue is kept from
// there on (its earlier steps absent). An issue of a request without sectors (pass-through) begins it: no loss.
struct BlockCounts {
    HopAgreement bio_to_request, request_to_issue, request_to_complete;
    std::uint64_t unmatched_getrq = 0, unmatched_merge = 0, unmatched_issue = 0, unmatched_complete = 0,
                  unmatched_requeue = 0, second_completions = 0, incomplete_at_end = 0, pointer_reuse = 0, evicted = 0;
    std::uint64_t unmatched_insert = 0, unmatched_split = 0, unmatched_bio_complete = 0, unmatched_rq_bio = 0;
    std::uint64_t front_merges = 0, back_merges = 0, rq_merges = 0, splits = 0, remaps = 0, requeues = 0, issues = 0,
                  completions = 0, partial_completions = 0, flushes = 0;
    std::uint64_t size_differs = 0;         // issued with another length than its bios have: a merge was not seen
    std::uint64_t lost_bios = 0;            // bios that never reached a request, nor another device
    std::uint64_t incomplete_devices = 0;   // of which many completions are missing
    std::uint64_t presumed_lost = 0;        // open requests given up: too many later ones of their device completed
    std::uint64_t interval_violations = 0;  // steps that came before the one that they follow: left out
    std::uint64_t failed = 0;               // completed with an error
    std::uint64_t completions_unseen = 0;   // of requests of numbered events: see BlockModel::numbered
    std::uint64_t corrected_merges = 0;     // merged bios that kRqBio moved to another request
    std::uint64_t queues_assumed = 0;       // devices with flushes whose hardware queues nothing names

    void add(const BlockCounts &);  // those of another host
};

enum class BlockMatch : std::uint8_t {
    kPointer,  // pointers where the events have them, else sectors; a shadow sector matcher counts agreement
    kSector    // pointers hidden: for traces without them, and to check the sector rules against them
};

// What a recording says of a device (/sys/block/DEV).
struct DeviceFacts {
    std::vector<std::vector<std::uint32_t>> queues;  // mq/N/cpu_list: CPUs of each hardware queue, by its number
    std::optional<bool> fua;                         // queue/fua: it takes FUA writes, so no flush follows them
};

// What models of several hosts share.
struct BlockShared {
    std::uint64_t bio = 0, request = 0;  // numbers that were given last
    std::uint64_t undecided = 0;         // completions that are nobody's yet
    bool has_wakes = false;              // the traces have sched_waking
};

class BlockModel {
  public:
    struct Hooks {
        // A bio was queued: say who owns it. Called once per Bio, before anything else sees it. A bio that was remapped
        // or split from another comes with that one's owner, which stays if the answer is nobody. Split remainders have
        // no queue_ns, and their event is the one that showed them.
        std::function<Owner(const BlockEvent &, const Bio &)> bio_queued;
        // The request is finished: completed, absorbed, reused or left over at the end (complete_ns absent). Comes
        // before bio_done of its bios.
        std::function<void(const Request &)> request_done;
        // The bio is finished with: its request is known or will never be.
        std::function<void(const Bio &)> bio_done;
        // In that interval a step must have happened that is not in the trace. `of`: the completion of this request,
        // whose other steps are known; nullptr: whose step it is, is not.
        std::function<void(const Request *of, std::uint32_t dev, std::int64_t begin_ns, std::int64_t end_ns)> missed;
        // Who waits for the request.
        std::function<Waiter(const Request &)> waiter;
        // When the owner's op has ended; kNoTime likewise.
        std::function<std::int64_t(const Owner &)> owner_ended;
    };

    // `shared`: with other models, and longer there than this one; nullptr: its own.
    BlockModel(BlockMatch match, Hooks hooks, BlockShared *shared = nullptr);
    ~BlockModel();
    BlockModel(const BlockModel &) = delete;
    BlockModel &operator=(const BlockModel &) = delete;

    // Apply one event. kRequestStep if the request or bio has an owner, kBackground if not, kContext (plug),
    // kOrphanRequest if no request or bio is known for it, kIgnored for kOther. A partition's remap is kContext: it
    // comes before its bio is queued.
    Fate event(const BlockEvent &);
    // The collector numbers its block events: a record that is lost leaves a hole in the numbers. So a completion that
    // is missing without one was never recorded, because the kernel ran no program for it
    // (docs/internals/collectors.md).
    void numbered();
    void know(std::uint32_t dev, const DeviceFacts &);
    // From now on events are steps of whole requests, in their order and with the pointers that these had: nobody
    // compares.
    void whole();
    // The same for an event about no bio and no request (kPlug, kUnplug): time goes on.
    void passed(std::int64_t ts_ns);
    // sched_waking: the thread is woken on that CPU. Of requests of one place the one that completed there last is its
    // own.
    void woken(std::int32_t tid, std::uint32_t cpu, std::int64_t ts_ns);
    // An op with this begin and end is to settle: whose the completions are that it waited for is decided now.
    void decide(std::int64_t begin_ns, std::int64_t end_ns, std::int64_t now_ns);
    // End of the trace: everything open is reported through the hooks.
    void finish();
    const BlockCounts &counts() const;
    std::size_t open_requests() const;
    std::size_t open_bios() const;
    // Those that are open now, as far as they are known, in order of first sight.
    void each_open(const std::function<void(const Request &)> &) const;

    static IoKind kind_of(std::uint32_t rwbs, std::uint32_t nr_sectors);
    // blkparse letters, as the kernel's own tracepoints (perf, ftrace) write them ("FWFSM") → the bit mask.
    static std::uint32_t rwbs_by_letters(std::string_view letters);
    static std::string rwbs_letters(std::uint32_t rwbs);
    // "block_rq_issue" or "block:block_rq_issue" → kRqIssue; anything else: kOther.
    static BlockKind kind_by_name(std::string_view event_name);

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace opline
