// SPDX-License-Identifier: MIT
// Which op an event is about: the one that it begins, the first that its keys name, or without keys that of its thread.
#pragma once
#include <utility>
#include <vector>

#include "stitch/batches.hpp"
#include "stitch/joins.hpp"

namespace opline {

class Resolver {
  public:
    Resolver(Stitching &s, OpLives &lives, Keys &keys, Joins &joins, Batches &batches)
        : s_(s), lives_(lives), ops_(lives.ops()), keys_(keys), joins_(joins), batches_(batches) {}

    // kTransition: `found` says the op.
    Fate resolve(Passage &);
    // For the current event: the keys without an op, with their spaces, and the refs of further ops named by keys.
    const std::vector<std::pair<std::uint32_t, Key>> &unbound() const { return unbound_; }
    const std::vector<std::uint64_t> &others() const { return others_; }

  private:
    void begin(Passage &);
    Fate by_thread(Passage &);
    Fate by_keys(Passage &);
    void by_sole(Passage &);

    Stitching &s_;
    OpLives &lives_;
    OpTable &ops_;
    Keys &keys_;
    Joins &joins_;
    Batches &batches_;
    std::vector<std::pair<std::uint32_t, Key>> unbound_;
    std::vector<std::uint64_t> others_;
};

}  // namespace opline
