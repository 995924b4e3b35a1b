// SPDX-License-Identifier: MIT
// Links that wait for the end of their op before they are told. If a request's issue is lost, its completion is taken
// for another request's. Only later events show that: a completion that finds no issued request, or an op that ends
// without a completion. Most of them come before the op is over.
#pragma once
#include <cstdint>
#include <deque>

#include "base/lost_intervals.hpp"
#include "event/event.hpp"
#include "link/linking.hpp"
#include "op/op.hpp"

namespace opline {

class HeldLinks {
  public:
    // Limit of waiting links; beyond, the oldest link is reported as known.
    static constexpr std::size_t kMost = 1u << 16;

    // The bio was there in [since_ns, until_ns]; kNoTime: not known.
    void hold(const LinkRow &row, const BatchBio &bio, std::int64_t since_ns, std::int64_t until_ns) {
        held_.push_back({row, bio, since_ns == kNoTime ? until_ns : since_ns, until_ns});
    }
    // Reports the first links, in order, up to the first op that is not over. With events missing in a link's time, the
    // request may not be the bio's request.
    template <class Over, class Tell>  // bool(ref of an op), void(const LinkRow &, const BatchBio &)
    void tell(const LostIntervals &lost, Over over, Tell tell) {
        while (!held_.empty() && (held_.size() > kMost || over(held_.front().row.ref))) {
            Held &first = held_.front();
            if (first.until_ns != kNoTime && lost.overlap(first.since_ns, first.until_ns)) first.row.doubtful = true;
            tell(first.row, first.bio);
            held_.pop_front();
        }
    }

  private:
    struct Held {
        LinkRow row;
        BatchBio bio;
        std::int64_t since_ns, until_ns;
    };
    std::deque<Held> held_;
};

}  // namespace opline
