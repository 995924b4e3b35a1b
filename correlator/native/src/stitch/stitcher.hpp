// SPDX-License-Identifier: MIT
// Finds the op of each point, by key or by the thread that works for it, and appends the transition.
// Online: O(1) per event; what is in memory follows what is in flight.
//
// An event goes one way: the stitcher chooses its rule, the Resolver finds its op, and the Applier gives the op what
// the event says. The parts below these own the state: ThreadStates, OpLives, Keys, Joins, Batches, AsyncIos,
// OpDetails, and the Settling of ops that are final.
#pragma once
#include "event/thread_names.hpp"
#include "stitch/applier.hpp"
#include "stitch/op_locator.hpp"
#include "stitch/own_requests.hpp"
#include "stitch/settling.hpp"

namespace opline {

class Stitcher {
  public:
    Stitcher(const Plan &, StringPool &, NameIds &, const Threads &, Population &, StitchHooks);
    Stitcher(const Stitcher &) = delete;

    Fate event(BoundClass &, const Event &, std::uint32_t host);
    // Settles the ops with an end more than linger_ns before now.
    void advance(std::int64_t now_ns) { settling_.advance(now_ns); }
    // Skips texts needed only by the table of ops.
    void skip_texts() {
        keys_.skip_texts();
        details_.skip_objects();
    }
    void last_event(std::int64_t last_ns);  // the trace ends: settling() has the remaining ops
    // The thread has ended, and a new thread has the same number: the old thread's work is not the new thread's.
    void forget_thread(std::uint32_t host, std::int64_t tid, std::int64_t now_ns);
    void thread_ended(std::uint32_t host, std::int64_t tid, std::int64_t ts_ns);
    void process_ended(std::int32_t pid, std::int64_t ts_ns);
    void events_lost();  // events are missing from here back

    OpLocator &locator() { return locator_; }
    OpTable &ops() { return lives_.ops(); }
    std::size_t threads() const { return threads_.size(); }
    const ThreadPoints &thread_points() const { return lives_.thread_points(); }
    OpDetails &details() { return details_; }
    AsyncIos &ios() { return ios_; }
    OwnRequests &own_requests() { return own_requests_; }
    Settling &settling() { return settling_; }
    const StitchCounts &counts() const { return s_.counts; }

  private:
    BoundPoint *choose(BoundClass &, const Event &, const ThreadId &, bool &broken);
    bool finds(const BoundPoint &, const Event &, const ThreadId &);
    Transition transition_of(const BoundClass &, BoundPoint &, const Event &, const ThreadId &, ThreadState &);
    Fate note(const BoundPoint &, const Event &, ThreadState &, const ThreadId &);
    void tell_message(const Passage &) const;
    Fate of_call(Passage &);
    Fate of_batch(Passage &);
    Fate pass(Passage &);

    Stitching s_;
    NameIds &names_;
    OpLives lives_;
    ThreadStates threads_;
    Keys keys_;
    Joins joins_;
    Settling settling_;
    Batches batches_;
    AsyncIos ios_;
    OwnRequests own_requests_;
    std::uint32_t awake_;  // pool id
    OpDetails details_;
    Resolver resolver_;
    Applier applier_;
    OpLocator locator_;
};

}  // namespace opline
