// SPDX-License-Identifier: MIT
// Steps that must have happened, as others show, and that the trace does not have: evidence of a loss that no tracer
// counted. What was in flight when the trace began is none: the model tells it by how long it took, against the longest
// that the device has taken so far.
#pragma once
#include "block/matching.hpp"

namespace opline::block_model {

class StepEvidence {
  public:
    explicit StepEvidence(Matching &m) : m_(m) {}

    // Learns the time between two successive steps of a request of the device.
    static void took(Device &, std::int64_t begin_ns, std::int64_t end_ns);
    void missed(std::uint32_t dev, std::int64_t begin_ns, std::int64_t end_ns, const ReqRec *of = nullptr);
    bool is_unseen(ReqRec &);
    void missed_completion(ReqRec &, std::int64_t begin_ns);
    Waiter waiter(const ReqRec &) const;
    std::int64_t left_ns(const ReqRec &) const;
    bool has_ended(const Owner &) const;
    bool too_long(const Device &, std::int64_t begin_ns, std::int64_t end_ns) const;
    void came_from_nowhere(const BlockEvent &);
    void check_issued(const BlockEvent &, const ReqRec &);
    void check_allocated(const BlockEvent &, const ReqRec &);

  private:
    Matching &m_;
};

}  // namespace opline::block_model
