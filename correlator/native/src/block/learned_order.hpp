// SPDX-License-Identifier: MIT
// The order in which a kernel and a device take requests. No event tells it: it is learned from requests that nothing
// else can be taken for.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

#include "event/event.hpp"

namespace opline::block_model {

constexpr std::uint64_t kLearned = 100;  // completions after which something is taken for learned

// The order in which a thread's plug is emptied, learned from requests of different places. blk_add_rq_to_plug() puts a
// request at the list's head, and requests are taken from there: last in, first out from Linux 5.16 to 6.12. Before and
// after that it is first in, first out.
class PlugOrder {
  public:
    // The thread's request, made at the event `made`, takes a step out of the plug at the event `now`.
    void note(std::int32_t thread, std::uint64_t made, std::uint64_t now) {
        if (thread == tid_ && made < step_ && made != request_) ++(made < request_ ? last_first_ : first_first_);
        tid_ = thread;
        request_ = made;
        step_ = now;
    }
    // More often the last first than the first first.
    bool last_in_first_out() const { return last_first_ > first_first_; }
    bool nothing_known() const { return last_first_ == first_first_; }

  private:
    std::int32_t tid_ = -1;                 // of the last step: whose,
    std::uint64_t request_ = 0, step_ = 0;  // of which request, and when
    std::uint64_t last_first_ = 0, first_first_ = 0;
};

// In which order a device completes what was issued.
class CompletionOrder {
  public:
    // Of two requests of one place at the device the one that was issued later, or earlier, has completed: known where
    // direction or length tells them apart.
    void note_later_first() { ++last_first_; }
    void note_earlier_first() { ++first_first_; }
    bool last_in_first_out() const { return last_first_ > first_first_; }

    // So many requests of the device completed between the issue and the completion of one.
    void note_overtaken(std::uint64_t completions) {
        std::size_t power = 0;
        for (; completions > 0 && power + 1 < overtaken_.size(); completions >>= 1) ++power;
        ++overtaken_[power];
    }
    // So many that 99 % of its requests were overtaken by fewer; a power of two, 0: none completed.
    std::uint64_t seldom_overtaken() const {
        std::uint64_t total = 0, more = 0;
        for (auto n : overtaken_) total += n;
        for (std::size_t power = overtaken_.size(); power-- > 0;) {
            more += overtaken_[power];
            if (more * 100 > total) return std::uint64_t{1} << power;
        }
        return 0;
    }

  private:
    std::uint32_t first_first_ = 0, last_first_ = 0;
    std::array<std::uint32_t, 32> overtaken_{};  // a count per power of two
};

}  // namespace opline::block_model
