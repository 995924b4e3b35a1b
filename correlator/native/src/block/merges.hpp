// SPDX-License-Identifier: MIT
// Bios and requests that join other requests: by their places when the kernel says so, and by the pointers that BPF's
// collector names at the issue.
#pragma once
#include "block/finder.hpp"

namespace opline::block_model {

class Merges {
  public:
    Merges(Matching &m, StepEvidence &evidence, Bios &bios, Requests &requests, Finder &finder)
        : m_(m), evidence_(evidence), bios_(bios), requests_(requests), finder_(finder) {}

    Fate merge(const BlockEvent &, bool front);
    Fate rq_merge(const BlockEvent &);
    Fate rq_bio(const BlockEvent &);
    void confirm_bio(Index bio, Index request);

  private:
    Matching &m_;
    StepEvidence &evidence_;
    Bios &bios_;
    Requests &requests_;
    Finder &finder_;
    bool has_rq_bio_ = false;  // the capture names the further bios of a request at its issue
};

}  // namespace opline::block_model
