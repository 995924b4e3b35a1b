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

// Who did something.
struct ThreadId {
    std::uint32_t host = 0;
    std::int32_t pid = -1;
    std::int64_t tid = -1;
    std::uint32_t pid_life = 0, tid_life = 0;  // how many had the number before: Threads::life()
};

// The op that a thread works for since it entered: a ref, and the key spaces that the entering event carried.
struct Working {
    std::uint64_t ref = 0, spaces = 0;
};

struct ThreadState {
    std::vector<Working> stack;                                 // the thread works for the last
    std::vector<std::pair<std::uint32_t, std::int64_t>> marks;  // (mark, when), since it woke
    // When the thread made the mark; nullptr: it has not.
    std::int64_t *marked_ns(std::uint32_t mark) {
        for (auto &[made, when_ns] : marks)
            if (made == mark) return &when_ns;
        return nullptr;
    }
    std::shared_ptr<Batch> batch;                              // open on this thread
    std::vector<std::pair<std::int64_t, std::uint32_t>> done;  // its work for the last one: Batch::before of the next
    std::unique_ptr<IoCall> call;                              // that it is in
    std::unique_ptr<OwnBio> own;
    std::uint64_t syncing = 0;  // the op whose sync it is in, as far as is known
    // Its process, and its name, as its points say them; -1, 0: unknown.
    std::int32_t pid = -1;
    std::uint32_t comm = 0;
    // Its last event, and the process there.
    std::int64_t last_ns = kNoTime;
    std::int32_t last_pid = -1;
};

struct StitchCounts {
    std::uint64_t key_conflicts = 0;  // an event's find keys named different ops; the first won
    std::uint64_t ends_without_op = 0;
    std::uint64_t evicted_ops = 0;  // open for too long while memory was short
    std::uint64_t batches_left_open = 0;
    std::uint64_t reaps_unseen = 0;   // I/Os that a call should have taken: they end at their completion
    std::uint64_t ends_untold = 0;    // I/Os of which nothing says when they were done
    std::uint64_t halves_joined = 0;  // by a key that both carried
    std::uint64_t halves_joined_by_order = 0;
    std::uint64_t ambiguous_halves = 0;  // met by nobody: ops of several processes waited for them
    std::uint64_t order_mismatches = 0;  // halves that order put together and time or a key parts
    std::uint64_t evicted_facts = 0;
    std::uint64_t batch_counts_differ = 0;  // members found and declared
    std::uint64_t batches_unseen = 0;       // ops went on without the batch that they needed
};

struct StitchHooks {
    std::function<void(Op &)> settle;  // the op is final: write it; it is released afterwards
    std::function<void(const Batch &)> batch_closed;
    std::function<void(Op &, std::int64_t)> wrote;  // the op's bytes are no longer in flight
    std::function<void(Op &, std::int64_t tid, std::int64_t)> sync_begun;
    std::function<void(Op &, std::int64_t)> sync_ended;  // kNoTime: its end was not seen
    // A message between hosts was sent or received at that point; the key is the same at both of its ends.
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

// Which op an event is about, and how that is known.
struct FoundOp {
    Op *op = nullptr;
    std::uint32_t child = 0;
    std::uint64_t ref = 0;  // through which the op was found
    // key spaces that say so: the event's, or those of the event that entered the thread
    std::uint64_t spaces = 0;
};

// The event of a point on its way to the op that it is about.
struct Passage {
    BoundPoint &bp;
    const PointSpec &spec;
    const Event &ev;
    ThreadId who;
    ThreadState &ts;
    FoundOp working;  // what its thread works for
    FoundOp found;    // what it is about
    Transition t;     // what the op gets
};

}  // namespace opline
