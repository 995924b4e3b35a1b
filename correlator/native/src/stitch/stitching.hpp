// SPDX-License-Identifier: MIT
// What the parts of the stitcher share: the plan, the texts, the identities of threads, the hooks, and the counts; and
// the event of a point on its way through the parts.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/strings.hpp"
#include "binding/classes.hpp"
#include "identity/threads.hpp"
#include "model/plan.hpp"
#include "op/op_table.hpp"
#include "op/thread_points.hpp"
#include "sched/population.hpp"
#include "stitch/ios.hpp"

namespace opline {

struct KeyHash {
    std::uint64_t operator()(const Key &k) const { return k.lo; }  // mixed already
};

// Host, process and thread of an event.
struct ThreadId {
    std::uint32_t host = 0;
    std::int32_t pid = -1;
    std::int64_t tid = -1;
    std::uint32_t pid_life = 0, tid_life = 0;  // how many had the number before: Threads::life()
};

// The op that a thread works for since entering: a ref, and the key spaces of the entering event.
struct Working {
    std::uint64_t ref = 0, spaces = 0;
};

struct ThreadState {
    std::vector<Working> stack;                                 // the thread works for the last
    std::vector<std::pair<std::uint32_t, std::int64_t>> marks;  // (mark, time), since the thread woke
    // The time of the thread's mark; nullptr: no such mark.
    std::int64_t *marked_ns(std::uint32_t mark) {
        for (auto &[made, when_ns] : marks)
            if (made == mark) return &when_ns;
        return nullptr;
    }
    std::shared_ptr<Batch> batch;  // open on this thread
    // work since the last batch: Batch::before of the next batch
    std::vector<std::pair<std::int64_t, std::uint32_t>> done;
    std::unique_ptr<IoCall> call;  // the thread is in this call
    std::unique_ptr<OwnBio> own;
    std::uint64_t syncing = 0;  // the op whose sync the thread is in, as far as known
    // Process and name of the thread, from its points; -1, 0: unknown.
    std::int32_t pid = -1;
    std::uint32_t comm = 0;
    // Time and process of the thread's last event.
    std::int64_t last_ns = kNoTime;
    std::int32_t last_pid = -1;
};

struct StitchCounts {
    std::uint64_t key_conflicts = 0;  // an event's find keys named different ops; the first won
    std::uint64_t ends_without_op = 0;
    std::uint64_t evicted_ops = 0;  // open for too long while memory was short
    std::uint64_t batches_left_open = 0;
    std::uint64_t reaps_unseen = 0;   // I/Os ended at their completion, as the taking call is missing
    std::uint64_t ends_untold = 0;    // I/Os without any event about their end
    std::uint64_t halves_joined = 0;  // by a key of both halves
    std::uint64_t halves_joined_by_order = 0;
    std::uint64_t ambiguous_halves = 0;  // not joined: ops of several processes waited
    std::uint64_t order_mismatches = 0;  // halves joined by order and parted by time or a key
    std::uint64_t evicted_facts = 0;
    std::uint64_t batch_counts_differ = 0;  // members found and declared
    std::uint64_t batches_unseen = 0;       // ops that continued without the needed batch
};

struct StitchHooks {
    std::function<void(Op &)> settle;  // writes the final op; the op is released afterwards
    std::function<void(const Batch &)> batch_closed;
    std::function<void(Op &, std::int64_t)> wrote;  // the op's bytes are no longer in flight
    std::function<void(Op &, std::int64_t tid, std::int64_t)> sync_begun;
    std::function<void(Op &, std::int64_t)> sync_ended;  // kNoTime: the end of the sync is missing
    // A message between hosts was sent or received at the point; both ends have the same key.
    std::function<void(const Transition &, std::uint32_t host, MessageDo, const Key &)> message;
};

struct Stitching {
    const Plan &plan;
    StringPool &strings;
    const Threads &identities;
    Population &population;
    StitchHooks hooks;
    StitchCounts counts;
};

// The op of an event, and how opline knows.
struct FoundOp {
    Op *op = nullptr;
    std::uint32_t child = 0;
    std::uint64_t ref = 0;  // the ref used to find the op
    // key spaces with this op: of the event, or of the event that entered the thread
    std::uint64_t spaces = 0;
};

// The event of a point on the way to its op.
struct Passage {
    BoundPoint &bp;
    const PointSpec &spec;
    const Event &ev;
    ThreadId who;
    ThreadState &ts;
    FoundOp working;  // the op that the thread works for
    FoundOp found;    // the op of the event
    Transition t;     // the new transition of the op
};

}  // namespace opline
