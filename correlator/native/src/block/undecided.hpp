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
        bool is_waited_for = false;  // the end of what waits can show whose it is
        bool is_last = true;         // nothing of the block layer came on its CPU since
    };
    enum class Shown : std::uint8_t { kByWake, kByAll, kByOrder, kByNobody };
    struct Decision {
        BlockEvent event{};
        Index request = kNil;       // kNil: none of those that fitted is there any more
        std::vector<Index> unsure;  // requests that may be taken for one another
        Shown shown = Shown::kByNobody;
        bool is_only = false;  // kByWake: since the request was issued no other completion came that fits it
    };

    Undecided(Matching &m, StepEvidence &evidence, Requests &requests)
        : m_(m), evidence_(evidence), requests_(requests) {}

    bool any() const { return !held_.empty(); }
    // Can anything show whose the completion is? Then it is kept here.
    bool hold(const BlockEvent &, const std::vector<Index> &candidates);
    // A block event comes. True: something can be decided that it depends on.
    bool passed(const BlockEvent &);
    // One of them may be of an op with this begin and end.
    bool is_inside(std::int64_t begin_ns, std::int64_t end_ns) const;
    // The thread was woken on that CPU: the completion there is its request's.
    bool woken(std::int32_t tid, std::uint32_t cpu, std::int64_t ts_ns, Decision &);
    // The next one that is decided by now; `at_end`: nothing more comes.
    bool next(Decision &, bool at_end);

  private:
    struct Ended {
        Index request = kNil;
        std::int64_t end_ns = kNoTime;
        bool is_alone = true;  // nobody else went on at that time
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
