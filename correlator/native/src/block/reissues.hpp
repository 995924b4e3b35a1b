// SPDX-License-Identifier: MIT
// Requests that are issued twice, where no event says so.
#pragma once
#include "block/finder.hpp"

namespace opline::block_model {

class Reissues {
  public:
    Reissues(Matching &m, Bios &bios, Requests &requests, Finder &finder)
        : m_(m), bios_(bios), requests_(requests), finder_(finder) {}

    Index issued_again(const BlockEvent &);
    void note_issue(const BlockEvent &, Index);
    void note_reissue(const BlockEvent &, Index);
    Index second_of_reissue(const BlockEvent &);

  private:
    Matching &m_;
    Bios &bios_;
    Requests &requests_;
    Finder &finder_;
};

}  // namespace opline::block_model
