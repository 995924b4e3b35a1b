// SPDX-License-Identifier: MIT
// Requests whose completion never comes: those that later ones of their device have overtaken.
#pragma once
#include "block/requests.hpp"

namespace opline::block_model {

class LostRequests {
  public:
    LostRequests(Matching &m, StepEvidence &evidence, Requests &requests)
        : m_(m), evidence_(evidence), requests_(requests) {}

    // Now and then: gives up those that are lost by now.
    void look();
    void find_overdue();

  private:
    void give_up_overtaken();
    void give_up_missing(std::size_t most);

    Matching &m_;
    StepEvidence &evidence_;
    Requests &requests_;
    std::uint64_t next_look_ = 0;  // the event at which give_up_missing looks again
};

}  // namespace opline::block_model
