// SPDX-License-Identifier: MIT
// An event class bound to the plan: which points it can be, and in which slots their fields lie. Decided once
// per class; past this, nobody compares names.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/strings.hpp"
#include "binding/block_slots.hpp"
#include "binding/record_slots.hpp"
#include "event/event.hpp"
#include "event/ledger.hpp"
#include "model/plan.hpp"
#include "op/transitions.hpp"
#include "sched/population.hpp"
#include "sched/sched.hpp"

namespace opline {

struct BoundKey {
    std::uint32_t space = 0;
    KeyScope scope = KeyScope::kGlobal;
    struct Seed {                        // the hash of the space and of the last event's scope
        std::int64_t host = -1, id = 0;  // host -1: there was no event yet
        std::uint32_t life = 0;
        std::uint64_t lo = 0, hi = 0;
    };
    mutable Seed seed;
    std::uint64_t spaces = 0;                // key spaces of an event with this key
    std::vector<std::int32_t> slots, facts;  // of each field; facts empty: none is looked up
    std::uint64_t found = 0, missed = 0;     // for `opline model lint`
};

struct BoundPredicate {
    std::int32_t slot = kNoSlot;
    const Predicate *predicate = nullptr;
};

struct BoundPoint : KeyLists<BoundKey> {
    std::uint32_t spec = 0;  // index into Plan::points
    bool notes = false;      // the point has no op: it marks a time of the thread, or tells the value of a fact
    bool of_call = false;    // of a call that waits for I/Os, or returns
    bool decorates = false;  // fields, or the model, tell facts of the op
    bool of_files = false;   // of these facts: the op's file, the time of its bytes in flight, the wait for these bytes
    bool claims = false;     // from here on the thread works for an op or an open batch
    bool joins = false;      // makes a child of the op, or joins the op with another op
    std::uint64_t seen = 0, transitions = 0;
    std::uint64_t global_spaces = 0;  // bit per global key space of find and bind
    std::vector<BoundPredicate> when;
    std::uint64_t release_all = 0;   // bit per key space: every key of the space that names the op
    BoundKey fact_of, fact_value;    // of a learning point
    std::uint32_t mark = 0, at = 0;  // pool ids; 0: none
    PointFields<std::int32_t> slot;
    std::optional<BoundKey> ios_submit, ios_wait;
    std::int32_t ios_count = kNoSlot, ios_least = kNoSlot, ios_submitted = kNoSlot, ios_reaped = kNoSlot,
                 ios_names = kNoSlot, ios_taken = kNoSlot, ios_posted = kNoSlot;
    std::int32_t file_dev_slot = kNoSlot, inode_slot = kNoSlot;  // system calls from BPF
    std::uint32_t name_id = 0;                                   // pool id of a constant name
    std::vector<std::pair<std::string, std::uint32_t>> names;    // of the first values of slot.name
    std::uint32_t class_id = 0;                                  // pool id of a constant class; 0: none
    std::uint32_t batch_space = 0;
    bool needs_facts = false;  // skipped while the facts are unknown
    bool broken = false;       // the class lacks a field needed by the point
};

enum class ClassKind : std::uint8_t {
    kPoints,
    kBlock,
    kRequest,  // a whole request
    kBio,
    kRequestThread,  // the threads of whole requests
    kDeviceName,
    kCollectorLost,
    kSchedSwitch,
    kSchedWake,
    kOffCpu,
    kRanInstead,  // BPF: the thread that ran while another thread waited for its CPU
    kLockWait,    // BPF: the lock that a thread slept for, and the lock's holder
    kFollow,      // BPF begins or stops to report a thread outside of the recorded processes
    kFollowLost,  // some reports about such threads are missing
    kProcess,
    kThread,  // facts of a thread
    kCgroup,
    kFilePath,
    kTcp,   // a call sends or receives in a TCP stream
    kPlug,  // of the block layer, about no bio and no request
    kContext,
    kIgnored  // not used
};

// Of the events of a trace of whole requests.
inline std::optional<ClassKind> record_kind(std::string_view name) {
    if (name == "block:request") return ClassKind::kRequest;
    if (name == "block:bio") return ClassKind::kBio;
    if (name == "block:thread") return ClassKind::kRequestThread;
    return std::nullopt;
}

// For kOffCpu: the context of the wake-up, and the waker's last wait.
struct WakerSlots {
    std::int32_t irq = kNoSlot, cpu = kNoSlot, on_at = kNoSlot, off_at = kNoSlot, woken_at = kNoSlot;
    std::int32_t prev_state = kNoSlot, waker_tid = kNoSlot, waker_irq = kNoSlot, stack = kNoSlot, own_stack = kNoSlot;
};

struct SchedSlots {
    Wake wake = Wake::kWaking;
    std::int32_t tid = kNoSlot, prev_tid = kNoSlot, prev_state = kNoSlot, next_tid = kNoSlot, cpu = kNoSlot;
    std::int32_t off_at = kNoSlot, woken_at = kNoSlot;   // kOffCpu
    std::int32_t level = kNoSlot;                        // and kFollow
    std::int32_t ran_ns = kNoSlot, ran_until = kNoSlot;  // kRanInstead
    std::int32_t lock = kNoSlot, lock_flags = kNoSlot;   // kLockWait
    WakerSlots waker;                                    // kOffCpu
    bool loses = false;                                  // kCollectorLost: threads' states may be missing as well
    std::int32_t since = kNoSlot;                        // the missing requests are of this time and later
    std::int32_t until = kNoSlot;                        // up to this time; else up to the event
};

// Facts of a thread. kTold: a field has the start; kNow: the thread begins; kBefore: the thread began earlier, at an
// unknown time.
struct ThreadSlots {
    enum class Start : std::uint8_t { kTold, kNow, kBefore };
    Start start = Start::kTold;
    std::int32_t tid = kNoSlot, pid = kNoSlot, vtid = kNoSlot, vpid = kNoSlot, pid_ns = kNoSlot, start_ns = kNoSlot;
    std::int32_t cgroup = kNoSlot;
};

// The cgroup of a thread, or the name of a cgroup.
struct CgroupSlots {
    std::int32_t cgroup = kNoSlot, pid = kNoSlot, tid = kNoSlot, path = kNoSlot;
};

// The path of a file.
struct FilePathSlots {
    std::int32_t dev = kNoSlot, inode = kNoSlot, generation = kNoSlot, path = kNoSlot;
};

// Of a TCP stream.
struct TcpSlots {
    bool send = false;
    std::int32_t local_high = kNoSlot, local_low = kNoSlot, local_port = kNoSlot;
    std::int32_t peer_high = kNoSlot, peer_low = kNoSlot, peer_port = kNoSlot;
    std::int32_t socket = kNoSlot, position = kNoSlot, bytes = kNoSlot;
};

// An event of a process. Kernel domain: with `tid`, which tells a process from a thread.
struct ProcessSlots {
    ProcessStep step = ProcessStep::kFork;
    std::int32_t pid = kNoSlot, parent = kNoSlot, tid = kNoSlot;
    bool of_all = false;  // of every process of the machine
};

// The number of a collector's event, counted per CPU.
struct NumberSlots {
    std::int32_t slot = kNoSlot, cpu = kNoSlot;
    std::uint32_t collector = 0;
};

struct BoundClass {
    // The fields read for every event come first.
    ClassKind kind = ClassKind::kIgnored;
    Domain domain = Domain::kUst;
    std::uint32_t name_id = 0;
    BoundPoint *only = nullptr;  // the point, if the class has only one and no event is skipped
    std::string name;
    std::vector<BoundPoint> points;
    BlockSlots block;
    std::unique_ptr<RecordSlots> record;  // kRequest, kBio, kRequestThread
    std::int32_t tid_slot = kNoSlot, pid_slot = kNoSlot, comm_slot = kNoSlot;
    // kPoints: tid and pid are numbers of this PID namespace; none: of the root namespace
    std::int32_t pid_ns_slot = kNoSlot;
    ThreadSlots thread;               // kThread
    CgroupSlots cgroup;               // kCgroup
    FilePathSlots file;               // kFilePath
    TcpSlots tcp;                     // kTcp
    std::int32_t cpu_slot = kNoSlot;  // kPoints from BPF: the event's own CPU; the stream's CPU is the collector's
    std::int32_t dev_slot = kNoSlot, diskname_slot = kNoSlot;  // kDeviceName
    std::int32_t count_slot = kNoSlot;                         // kCollectorLost
    SchedSlots sched;
    bool only_wakes = false;  // of kSchedWake: states are not wanted
    ProcessSlots process;
    NumberSlots number;
    FateCounts fates{};
    ClassPlan plan;
};

// Wanted results, besides the data needed by every result.
struct Wanted {
    bool sched = true;         // threads' states
    bool thread_names = true;  // of every transition, not of ops' begins alone
    bool requests = true;      // with names of the threads
};

// Binds a class. The result's plan.id is left to the caller. Without with_sched nothing of sched events is decoded.
BoundClass bind_class(const ClassDecl &, const Plan &, StringPool &, const Wanted &);

// True if the predicates of the point hold for the event.
bool holds(const BoundPoint &, const Event &);
// The same for a broken point: a predicate on a missing field decides nothing.
bool could_hold(const BoundPoint &, const Event &);

}  // namespace opline
