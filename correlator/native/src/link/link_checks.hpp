// SPDX-License-Identifier: MIT
// What holds for every link, whatever rule made it. A bio outside the bytes of the op that its thread seems to work for
// is another op's: events of the thread are lost. A request that comes, or goes on, after the op's end is another
// bio's: a step of it was lost. Nothing is linked then, and it is counted.
#pragma once
#include "base/flat_map.hpp"
#include "link/bio_links.hpp"

namespace opline {

class LinkChecks {
  public:
    LinkChecks(Linking &l, BioLinks &links) : l_(l), links_(links) {}

    // The final end of the op; kNoTime: no known end.
    std::int64_t end_of(std::uint64_t ref) const;
    // The waiter of the request; among several the first to end.
    Waiter waiter(const Request &) const;
    void check(BioLink &, std::int64_t getrq_ns, std::int64_t complete_ns);
    void check_process(const BioLink &, std::uint64_t op, std::uint32_t rules);
    // A request of the batch was done.
    void note_batch(const Batch &batch, std::int64_t done_ns) { batch_waits_[batch.space].note(done_ns, batch.end_ns); }
    // The op is final, and leaves memory.
    void settled(const Op &);

  private:
    // For the batches of a kind: how many requests ended before and after the batch closed.
    struct BatchWaits {
        std::uint64_t waited = 0, went_on = 0;
        void note(std::int64_t done_ns, std::int64_t closed_ns) {
            ++(closed_ns == kNoTime || done_ns <= closed_ns ? waited : went_on);
        }
        bool nearly_always() const { return waited >= 8 && waited >= 8 * went_on; }
    };
    bool impossible(const BioLink &, std::int64_t getrq_ns, std::int64_t complete_ns) const;
    Waiter waiter(const BioLink &) const;
    static void postpone(BioLink &);

    Linking &l_;
    BioLinks &links_;
    FlatMap<std::uint64_t, std::int64_t> ends_;       // of settled ops with perhaps open bios
    FlatMap<std::uint32_t, BatchWaits> batch_waits_;  // by space of the batch
};

}  // namespace opline
