// SPDX-License-Identifier: MIT
// The order in which a kernel and a device take requests. No event tells it: it is learned from requests that nothing
// else can be taken for.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

#include "event/event.hpp"

namespace opline::block_model {

constexpr std::uint64_t kLearned = 100;  // completions needed to count something as learned

// The order in which a thread's plug is emptied, learned from requests of different places. blk_add_rq_to_plug() puts a
// request at the head of the list, and the kernel takes requests from the head: last in, first out from Linux 5.16 to
// 6.12. Older and newer kernels: first in, first out.
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
    std::int32_t tid_ = -1;                 // thread of the last step,
    std::uint64_t request_ = 0, step_ = 0;  // its request, and its event
    std::uint64_t last_first_ = 0, first_first_ = 0;
};

// The order in which a device completes requests.
class CompletionOrder {
  public:
    // Of two requests of one place at the device, the later or the earlier issue has completed: known if direction or
    // length tells the requests apart.
    void note_later_first() { ++last_first_; }
    void note_earlier_first() { ++first_first_; }
    bool last_in_first_out() const { return last_first_ > first_first_; }

    // The number of requests of the device that completed between a request's issue and completion.
    void note_overtaken(std::uint64_t completions) {
        std::size_t power = 0;
        for (; completions > 0 && power + 1 < overtaken_.size(); completions >>= 1) ++power;
        ++overtaken_[power];
    }
    // A limit: 99 % of the requests were overtaken by fewer. A power of two; 0: no completions.
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
