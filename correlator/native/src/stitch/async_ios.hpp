// SPDX-License-Identifier: MIT
// Makes an op of each I/O that outlives its call: see stitch/ios.hpp, and docs/internals/model.md.
#pragma once
#include <memory>
#include <vector>

#include "base/flat_map.hpp"
#include "stitch/keys.hpp"
#include "stitch/thread_states.hpp"

namespace opline {

class AsyncIos {
  public:
    AsyncIos(Stitching &, ThreadStates &, OpLives &, Keys &);

    // Calls for queueing I/Os or taking completions. head: the op of the first I/O; nullptr: the call only waits, or
    // each I/O begins with its own event.
    void enter_call(Passage &, Op *head);
    Fate return_from_call(Passage &);
    void leave_call(ThreadState &);
    // The op of an I/O with its own begin event. In a call the op begins with the call; else (submitted by a kernel
    // thread) with the event.
    Op &begin_told(Passage &);
    // The I/O is complete: the op ends, or waits until a call takes the completion. posted: number of the ring's
    // completions up to this one; negative: unknown.
    void io_done(Op &, std::int64_t done_ns, std::int64_t posted = -1);
    // The op that owns the bio in queueing by a thread: the I/O submitted by the thread's call, else the thread's
    // current op. nullptr: neither.
    Op *op_of_bio(std::uint32_t host, const BlockEvent &, const Bio &);
    // Bios and requests of an op that is one I/O.
    void bio_opened(std::uint64_t op);
    void request_done(const Request &);
    void bio_done(const Bio &);
    // Events are missing from here back: the takers of completions are unknown.
    void events_lost();
    void finish();

  private:
    std::uint32_t class_of_io(std::uint32_t base, IoKind);
    Op &another_io(IoCall &);
    Op *io_of_bio(IoCall &, const Bio &);
    void close_submit(IoCall &, std::int64_t count, const Transition &);
    bool reap(IoQueue &, std::int64_t count, std::vector<std::uint64_t> names, Transition);
    void end_at_completion(Op &, const Transition *returned = nullptr);
    void end_io(Op &, std::int64_t ts_ns, std::uint32_t order);
    void complete_all(IoQueue &);
    // stitch/ring_ios.cpp
    void take_up_to(IoQueue &, std::uint32_t taken);
    void forget_done(IoQueue &, std::size_t most);
    void end_waited_for(IoQueue &, const IoCall &, Transition);
    // stitch/io_names.cpp
    void claim_names(const IoCall &, IoQueue &);
    void give_names(const IoCall &, IoQueue &, std::int64_t count);
    void forget_names(IoQueue &);
    void go_by_order(IoQueue &);
    bool take_named(IoQueue &, std::uint64_t name, const Transition &);
    std::int64_t take_in_order(IoQueue &, std::int64_t count, bool nameless, const Transition &);
    void take_early(IoQueue &);

    Stitching &s_;
    ThreadStates &threads_;
    OpLives &lives_;
    OpTable &ops_;
    Keys &keys_;
    FlatMap<Key, IoQueue, KeyHash> io_queues_;
    FlatMap<std::uint64_t, std::uint32_t> io_classes_;  // (class, kind) → class with the kind
    std::uint32_t completed_, reaped_;                  // pool ids
};

}  // namespace opline
