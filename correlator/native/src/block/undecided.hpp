// SPDX-License-Identifier: MIT
// Completions that fit several requests of one place equally well. They are nobody's until something shows whose:
// - the thread that the completion wakes. bio_endio() wakes it at once, on the CPU of the completion;
// - the end of an op that waits for one of the requests: it takes the first completion of the place that is nobody's.
//   One reaper sees completions in their order;
// - that all but one of the requests have got theirs.
// Where nobody can show it, the request gets it whose turn it is, by the order of issue.
#pragma once
#include <vector>

#include "block/requests.hpp"

namespace opline::block_model {

class Undecided {
  public:
    struct Candidate {
        Index request;
        std::uint64_t id;  // Request::id: the record may be another's by now
    };
    struct Completion {
        BlockEvent event;
        std::vector<Candidate> candidates;
        bool is_waited_for = false;  // the end of a waiter can decide
        bool is_last = true;         // no block event on the CPU since
    };
    enum class Shown : std::uint8_t { kByWake, kByAll, kByOrder, kByNobody };
    struct Decision {
        BlockEvent event{};
        Index request = kNil;       // kNil: no fitting request is left
        std::vector<Index> unsure;  // requests that may be mistaken for one another
        Shown shown = Shown::kByNobody;
        bool is_only = false;  // kByWake: no other fitting completion came since the request's issue
    };

    Undecided(Matching &m, StepEvidence &evidence, Requests &requests)
        : m_(m), evidence_(evidence), requests_(requests) {}

    bool any() const { return !held_.empty(); }
    // Keeps the completion here if a later event can decide. Returns whether it was kept.
    bool hold(const BlockEvent &, const std::vector<Index> &candidates);
    // A block event comes. True: a decision depends on this event.
    bool passed(const BlockEvent &);
    // A held completion may be of an op with this begin and end.
    bool is_inside(std::int64_t begin_ns, std::int64_t end_ns) const;
    // A thread was woken on the CPU: the last completion there is of the thread's request.
    bool woken(std::int32_t tid, std::uint32_t cpu, std::int64_t ts_ns, Decision &);
    // The next decided completion; `at_end`: no more events.
    bool next(Decision &, bool at_end);

  private:
    struct Ended {
        Index request = kNil;
        std::int64_t end_ns = kNoTime;
        bool is_alone = true;  // no other waiter resumed at the same time
    };
    bool completes_before(const Candidate &, Index) const;
    bool take_ended(Decision &);
    std::size_t completion_of(const Ended &, Shown &) const;
    void drop_gone(Completion &) const;
    std::vector<Index> fitted(const Place &);
    void close_group(const Place &);
    void take(std::size_t, Decision &);

    Matching &m_;
    StepEvidence &evidence_;
    Requests &requests_;
    std::vector<Completion> held_;  // in order of time
};

}  // namespace opline::block_model
