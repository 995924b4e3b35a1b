// SPDX-License-Identifier: MIT
// Whether an op reads or writes: by the model, or by the name of its class.
#pragma once
#include "base/flat_map.hpp"
#include "link/linking.hpp"

namespace opline {

class Directions {
  public:
    explicit Directions(Linking &l) : l_(l) {}

    Direction direction_of(const Op &);
    // The bio can be of the op, as far as directions say.
    bool right_way(const Op &, const Bio &);

  private:
    Linking &l_;
    FlatMap<std::uint32_t, Direction> class_directions_;  // by pool id
    std::uint32_t recent_class_ = ~0u;
    Direction recent_direction_ = Direction::kUnknown;  // the direction of the recent class
};

}  // namespace opline
