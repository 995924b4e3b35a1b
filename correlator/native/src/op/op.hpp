// SPDX-License-Identifier: MIT
// One op in memory: the points it passed, the keys that name it, the block requests that serve it.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "block/steps.hpp"
#include "event/event.hpp"
#include "identity/file_name.hpp"
#include "model/plan.hpp"
#include "op/transitions.hpp"

namespace opline {

// A block request as one op sees it: the Q of its own bio, then the request's steps. kNoTime: absent.
struct RequestCut : StepTimes {
    std::uint64_t request = 0;
    std::uint64_t first_request = 0;  // of a split's remainder: the request of the first part
    std::int64_t first_g = kNoTime;   // of a split's remainder: G of the first part
    std::int32_t queue_tid = -1, issue_tid = -1;
    std::uint32_t dev = 0;
    std::uint64_t sector = kNoSector;
    std::int64_t preflush = kNoTime;  // end of the flush before the data
    std::int64_t end = kNoTime;       // end of the flush behind the data; absent if none is needed
    std::int64_t floor_ns = kNoTime;  // of shared work: the op begins to wait at this time
    bool unseen = false;              // C is absent, and nothing is lost (Request::unseen)
    // The thread that takes a step; -1: none.
    std::int32_t tid_of(StepThread thread) const {
        return thread == StepThread::kQueuing ? queue_tid : thread == StepThread::kIssuing ? issue_tid : -1;
    }
    // Completion time of the bios.
    std::int64_t done_ns() const { return end != kNoTime ? end : c; }
    // The last known step of a request without a C: an index into kRequestSteps.
    std::size_t last_seen() const {
        std::size_t step = kStepD;
        while (step > 0 && this->*kRequestSteps[step].time == kNoTime) --step;
        return step;
    }
    // The last known time.
    std::int64_t known_ns() const { return unseen ? this->*kRequestSteps[last_seen()].time : done_ns(); }
};

// A bio of a batch's work, for the links of the members.
struct BatchBio {
    std::uint64_t bio = 0, request = 0;
    std::int64_t queue_ns = kNoTime;
    IoKind kind = IoKind::kOther;
    bool by_pointer = false;
};

// Work that one thread does for several ops at once. A batch exists once; members refer to the batch.
struct Batch {
    std::uint64_t serial = 0;
    std::uint32_t space = 0;  // pool id
    std::int64_t tid = -1;
    std::int64_t begin_ns = 0, end_ns = kNoTime;
    std::uint32_t members = 0;
    std::int64_t declared = -1;   // number of members in the closing event; -1: unknown
    bool opened_in_need = false;  // a point with an op's need opened the batch
    bool reaches = false;         // the batch reaches `reached` in the sequence `order`
    std::uint64_t reached = 0;
    Key order;
    std::uint64_t owner = 0;  // ref of the op that opened the batch in need
    std::vector<Transition> work;
    // the thread's points for the previous batch: time and number
    std::vector<std::pair<std::int64_t, std::uint32_t>> before;
    std::vector<RequestCut> requests;
    std::vector<BatchBio> bios;
    std::vector<Key> keys;    // names of the batch
    std::uint64_t alias = 0;  // ref through which the keys name the batch

    // The opener found the needed work done by others: no batch.
    bool idle() const { return opened_in_need && !reaches && members == 0 && requests.empty() && bios.empty(); }
};

struct BatchMembership {
    std::shared_ptr<Batch> batch;
    std::uint32_t joined_order;  // Transition::order of the joining point
};

// An op waits for the first batch of the sequence `order` that reaches `needed`.
struct BatchNeed {
    Key order;
    std::uint64_t needed;
    std::uint32_t joined_order;  // Transition::order of the point with the need
    bool sure;                   // an earlier batch reached less
};

// The I/O of an op; for an op that is one I/O, the progress.
struct IoLife {
    bool is_io = false;        // one I/O: the op ends at the completion, or when the program takes the completion
    bool own = false;          // a bio began the op, without a call
    bool told = false;         // own events tell the begin and the completion
    bool data = false;         // ring: the submitting call queued a bio with the data
    bool take_unseen = false;  // ring: the trace does not tell when the application took the completion
    bool end_untold = false;   // the I/O has ended at an unknown time
    bool ring = false, done = false;
    bool read_ahead = false;  // the bios read more than the op asked for
    bool lost = false;        // a request never completed: the completion time is unknown
    std::uint8_t votes = 0;   // facts learned from the op by the target (vote:: in link/targets.hpp)
    std::uint32_t space = 0;
    std::uint32_t open_bios = 0;
    std::uint32_t posted = 0;  // ring with a counter: number of completions up to this I/O
    std::int64_t done_ns = kNoTime;
    Key queue;
    std::uint64_t name = 0;  // the application's number of the I/O; 0: unknown
};

// kAlias: another name for an op (joined with another op), an op's child or a batch.
enum class OpState : std::uint8_t { kFree, kOpen, kEnded, kAlias };

// The fields read for every event come first, in one cache line.
struct OpAtHand {
    std::uint64_t serial = 0;  // op_id
    std::uint32_t slot = 0;
    OpState state = OpState::kFree;
    bool hard = false;  // a begin made the op, not a soft begin
    TransitionList transitions;
    std::uint64_t global_spaces = 0;  // a bit per global key space with a key of the op
};

// Fields with a value in most ops.
struct OpFacts {
    std::int64_t begin_ns = 0, end_ns = 0;
    std::int64_t offset_bytes = 0, length_bytes = 0;
    // the process and, if named by the model, the file read or written by the op
    std::uint64_t target = 0;
    std::uint32_t host = 0, target_host = 0;
    std::uint32_t op_class = 0;  // pool id; 0: not named
    std::uint32_t end_order = 0;
    std::int32_t pid = -1;
    std::uint32_t program_run = 0;  // Population::run_of() the process, at the begin
    std::uint32_t cgroup = 0;       // of the first thread, at the begin: pool id of the path; 0: unknown
    Direction direction = Direction::kUnknown;
    bool has_offset = false, has_length = false;
};

// Fields that are empty in most ops.
struct OpOddities {
    std::int64_t sync_ns = kNoTime;      // begin of the surrounding sync
    std::int64_t soft_end_ns = kNoTime;  // the last soft end
    std::uint64_t inode = 0;             // 0: unknown
    std::uint64_t data_bytes = 0;        // own data queued while the op's bytes were in flight
    std::uint64_t read_ahead_bytes = 0;  // the read-ahead part of data_bytes
    std::uint64_t write_number = 0;      // number of the last write, by end, among the target's writes; 0: none
    FileName file;                       // its generation and path, as told when the op began
    std::uint32_t file_dev = 0;          // device of the file, if the event tells (system calls from BPF)
    std::uint32_t bios = 0;              // bios of the op
    std::uint32_t bios_done = 0;         // completed bios without a request
    std::uint32_t bios_on_their_way = 0;
    std::uint32_t data_dev = 0;     // device of the first own data
    std::uint32_t window_host = 0;  // host on which the bytes got in flight
    std::uint32_t deferred = 0;     // pieces of the data written back outside the latency
    std::uint32_t soft_end_order = 0;
    IoLife io;
    std::uint64_t alias_of = 0;  // with kAlias: the op
    std::uint32_t alias_child = 0, alias_children_base = 0;
    Batch *alias_batch = nullptr;
    bool io_open = false;
    bool had_window = false;               // the op's bytes were in flight once
    bool synced = false, covered = false;  // the op had a sync; another op's sync covered the write
    bool failed = false;                   // the length at the end was an error
    bool completion_missing = false;       // only the completion of a request is missing
    bool number_taken = false;             // a thread of another process, with the same number, queued a bio
    bool has_soft_end = false;
    bool partner_sure = false;
    bool order_unsure = false;  // an op of another thread waited when order chose
    // at the meeting of the halves, ops of several processes waited
    bool of_several = false;
};

struct alignas(64) Op : OpAtHand, OpFacts, OpOddities {
    std::uint64_t partner = 0;  // probably the other half of the op, by order
    std::vector<Key> keys;
    std::vector<std::pair<std::uint32_t, Key>> lent;  // keys taken back by a later point, with the key space
    std::string object, key_text;
    std::string file_name;  // if the model's `file_by` is a text
    std::vector<RequestCut> requests;
    std::vector<BatchMembership> batches;
    std::vector<BatchNeed> needs;
    std::vector<std::uint32_t> parents;  // the parent of each child, from 1
    std::vector<std::uint64_t> aliases;  // refs to this op
    std::vector<Key> waits;              // keys under which the op waits for the other half
    std::vector<std::uint64_t> halves;   // key spaces of one half, per join proved by a key

    // The end is known, and not before the begin. If times go back, an end can come before the begin.
    bool complete() const { return state == OpState::kEnded && end_ns >= begin_ns && !io.end_untold; }
    // Adds the reads, writes and syncs of the other half.
    void take_io(const Op &gone) {
        if (direction == Direction::kUnknown) direction = gone.direction;
        if (program_run == 0) program_run = gone.program_run;
        if (cgroup == 0) cgroup = gone.cgroup;
        if (write_number == 0 && gone.write_number != 0) {
            write_number = gone.write_number;
            target = gone.target;
        }
        if (sync_ns == kNoTime) sync_ns = gone.sync_ns;
        had_window = had_window || gone.had_window;
        synced = synced || gone.synced;
        covered = covered || gone.covered;
        failed = failed || gone.failed;
        completion_missing = completion_missing || gone.completion_missing;
        data_bytes += gone.data_bytes;
        read_ahead_bytes += gone.read_ahead_bytes;
        deferred += gone.deferred;
    }

    // Adds the batches of the other half, whose transitions follow `offset` own transitions.
    void take_batches(const Op &gone, std::uint32_t offset) {
        for (const auto &m : gone.batches) batches.push_back({m.batch, m.joined_order + offset});
        for (const auto &n : gone.needs) needs.push_back({n.order, n.needed, n.joined_order + offset, n.sure});
    }

    // Empty, for a new op; the capacity stays.
    void reset(Shapes *shapes) {
        state = OpState::kFree;
        hard = false;
        global_spaces = partner = 0;
        transitions.clear(shapes);
        keys.clear();
        lent.clear();
        static_cast<OpFacts &>(*this) = {};
        static_cast<OpOddities &>(*this) = {};
        object.clear();
        key_text.clear();
        file_name.clear();
        requests.clear();
        batches.clear();
        needs.clear();
        parents.clear();
        aliases.clear();
        waits.clear();
        halves.clear();
    }
};

}  // namespace opline
