// SPDX-License-Identifier: MIT
// One op while it is in memory: what it passed, which keys name it, which requests serve it.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "block/steps.hpp"
#include "event/event.hpp"
#include "model/plan.hpp"
#include "op/transitions.hpp"

namespace opline {

// A block request as one op sees it: the Q of its own bio, then the request's steps. kNoTime: absent.
struct RequestCut : StepTimes {
    std::uint64_t request = 0;
    std::uint64_t first_request = 0;  // of a split's remainder: the first part's
    std::int64_t first_g = kNoTime;   // and its G
    std::int32_t queue_tid = -1, issue_tid = -1;
    std::uint32_t dev = 0;
    std::uint64_t sector = kNoSector;
    std::int64_t preflush = kNoTime;  // the flush before its data was done
    std::int64_t end = kNoTime;       // the flush behind its data was done; absent where it needs none
    std::int64_t floor_ns = kNoTime;  // of shared work: the op does not wait for it before
    bool unseen = false;              // C is absent, and nothing is lost (Request::unseen)
    // The thread that takes such a step; -1: none.
    std::int32_t tid_of(StepThread thread) const {
        return thread == StepThread::kQueuing ? queue_tid : thread == StepThread::kIssuing ? issue_tid : -1;
    }
    // When its bios are done.
    std::int64_t done_ns() const { return end != kNoTime ? end : c; }
    // Of one whose C was not seen: its last step, an index into kRequestSteps.
    std::size_t last_seen() const {
        std::size_t step = kStepD;
        while (step > 0 && this->*kRequestSteps[step].time == kNoTime) --step;
        return step;
    }
    // The last time of it that is known.
    std::int64_t known_ns() const { return unseen ? this->*kRequestSteps[last_seen()].time : done_ns(); }
};

// A bio of a batch's work, for the links of its members.
struct BatchBio {
    std::uint64_t bio = 0, request = 0;
    std::int64_t queue_ns = kNoTime;
    IoKind kind = IoKind::kOther;
    bool by_pointer = false;
};

// Work that one thread does for several ops at once. It exists once; its members refer to it.
struct Batch {
    std::uint64_t serial = 0;
    std::uint32_t space = 0;  // pool id
    std::int64_t tid = -1;
    std::int64_t begin_ns = 0, end_ns = kNoTime;
    std::uint32_t members = 0;
    std::int64_t declared = -1;   // members, as the closing event says; -1: it does not
    bool opened_in_need = false;  // by a point that says what an op needs
    bool reaches = false;         // as far as `reached`, among those of `order`
    std::uint64_t reached = 0;
    Key order;
    std::uint64_t owner = 0;  // ref of the op that opened it, where it said what it needs
    std::vector<Transition> work;
    // when which points were its thread's work for the batch before it
    std::vector<std::pair<std::int64_t, std::uint32_t>> before;
    std::vector<RequestCut> requests;
    std::vector<BatchBio> bios;
    std::vector<Key> keys;    // that name it
    std::uint64_t alias = 0;  // through which they do

    // Whoever opened it found that others did what it needs: it is none.
    bool idle() const { return opened_in_need && !reaches && members == 0 && requests.empty() && bios.empty(); }
};

struct BatchMembership {
    std::shared_ptr<Batch> batch;
    std::uint32_t joined_order;  // Transition::order of the joining point
};

// An op that waits for the first batch of an order that reaches so far.
struct BatchNeed {
    Key order;
    std::uint64_t needed;
    std::uint32_t joined_order;  // Transition::order of the point that says so
    bool sure;                   // a batch that reaches less was seen before
};

// Of an op's I/O; of an op that is one I/O: how far it is.
struct IoLife {
    bool is_io = false;        // it ends when its completion is taken, or with it
    bool own = false;          // begun by its bio, without a call
    bool told = false;         // events of its own tell when it begins, and when its completion is there
    bool data = false;         // of a ring: the call that submits it queued a bio with its data
    bool take_unseen = false;  // of a ring: nothing in the trace says when the application took the completion
    bool end_untold = false;   // it is over, and nothing in the trace says since when
    bool ring = false, done = false;
    bool read_ahead = false;  // its bios bring more than it asked for
    bool lost = false;        // a request of it never completed: when it was done is not known
    std::uint8_t votes = 0;   // what its target has learned from it (vote:: in link/targets.hpp)
    std::uint32_t space = 0;
    std::uint32_t open_bios = 0;
    std::uint32_t posted = 0;  // of a ring that counts them: how many completions it had with this one
    std::int64_t done_ns = kNoTime;
    Key queue;
    std::uint64_t name = 0;  // the number by which the application knows it; 0: not known
};

// kAlias: a name for something else: an op that it was found to be a part of, an op's child, a batch.
enum class OpState : std::uint8_t { kFree, kOpen, kEnded, kAlias };

// What every event looks at comes first, in one cache line.
struct OpAtHand {
    std::uint64_t serial = 0;  // op_id
    std::uint32_t slot = 0;
    OpState state = OpState::kFree;
    bool hard = false;  // a begin made it, not a soft one
    TransitionList transitions;
    std::uint64_t global_spaces = 0;  // bit per global key space in which it has a key
};

// What most ops have.
struct OpFacts {
    std::int64_t begin_ns = 0, end_ns = 0;
    std::int64_t offset_bytes = 0, length_bytes = 0;
    // what it reads or writes: its process and, where the model names one, the file
    std::uint64_t target = 0;
    std::uint32_t host = 0, target_host = 0;
    std::uint32_t op_class = 0;  // pool id; 0: not named
    std::uint32_t end_order = 0;
    std::int32_t pid = -1;
    std::uint32_t program_run = 0;  // Population::run_of() its process when it began
    std::uint32_t cgroup = 0;       // of its first thread when it began: pool id of the path; 0: not known
    Direction direction = Direction::kUnknown;
    bool has_offset = false, has_length = false;
};

// What most ops have nothing of.
struct OpOddities {
    std::int64_t sync_ns = kNoTime;      // begin of the sync that it is in
    std::int64_t soft_end_ns = kNoTime;  // the last soft end
    std::uint64_t inode = 0;             // 0: unknown
    std::uint64_t data_bytes = 0;        // of its own data that was queued while its bytes were in flight
    std::uint64_t read_ahead_bytes = 0;  // of them read-ahead
    std::uint64_t write_number = 0;      // of its last write, among its target's in order of their ends; 0: none
    std::uint32_t file_dev = 0;          // where the event says which file it is (system calls from BPF)
    std::uint32_t bios = 0;              // that it owns
    std::uint32_t bios_done = 0;         // of them those that are done and became no request
    std::uint32_t bios_on_their_way = 0;
    std::uint32_t data_dev = 0;     // where the first of its own data went
    std::uint32_t window_host = 0;  // the machine on which its bytes got in flight
    std::uint32_t deferred = 0;     // pieces of its data that were written back outside its latency
    std::uint32_t soft_end_order = 0;
    IoLife io;
    std::uint64_t alias_of = 0;  // with kAlias: of an op
    std::uint32_t alias_child = 0, alias_children_base = 0;
    Batch *alias_batch = nullptr;
    bool io_open = false;
    bool had_window = false;               // its bytes were in flight once
    bool synced = false, covered = false;  // it had a sync; another op's sync covered its write
    bool failed = false;                   // its length was an error at its end
    bool completion_missing = false;       // of a request of it, and nothing else is
    bool number_taken = false;             // another process' thread queued a bio under its thread's number
    bool has_soft_end = false;
    bool partner_sure = false;
    bool order_unsure = false;  // another thread's op waited when order chose among them
    // it waited, or came to meet one that waits, when ops of several processes did
    bool of_several = false;
};

struct alignas(64) Op : OpAtHand, OpFacts, OpOddities {
    std::uint64_t partner = 0;  // probably the other half of it, by order
    std::vector<Key> keys;
    std::vector<std::pair<std::uint32_t, Key>> lent;  // of them, with their space, those that a point takes back
    std::string object, key_text;
    std::string file_name;  // where the model's `file_by` is a text
    std::vector<RequestCut> requests;
    std::vector<BatchMembership> batches;
    std::vector<BatchNeed> needs;
    std::vector<std::uint32_t> parents;  // per child, from 1: whose child it is
    std::vector<std::uint64_t> aliases;  // refs that lead here
    std::vector<Key> waits;              // under which it waits to be met
    std::vector<std::uint64_t> halves;   // key spaces of one half, per joint that a key proved

    // It is known when it ended, and that is not before it began: where times go back it can.
    bool complete() const { return state == OpState::kEnded && end_ns >= begin_ns && !io.end_untold; }
    // What the other half of it read, wrote and synced.
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

    // Those that the other half joined and needs; its transitions come behind so many.
    void take_batches(const Op &gone, std::uint32_t offset) {
        for (const auto &m : gone.batches) batches.push_back({m.batch, m.joined_order + offset});
        for (const auto &n : gone.needs) needs.push_back({n.order, n.needed, n.joined_order + offset, n.sure});
    }

    // Ready for a new op, with the capacity kept.
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
