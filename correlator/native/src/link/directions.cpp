// SPDX-License-Identifier: MIT
#include "link/directions.hpp"

namespace opline {

Direction Directions::direction_of(const Op &op) {
    if (op.direction != Direction::kUnknown) return op.direction;
    if (op.op_class == recent_class_) return recent_direction_;
    auto [known, made] = class_directions_.insert(op.op_class);
    if (made) {
        const std::string &name = l_.strings.at(op.op_class);
        const bool read = name.find("read") != std::string::npos, write = name.find("write") != std::string::npos;
        *known = read == write ? Direction::kUnknown : read ? Direction::kRead : Direction::kWrite;
    }
    recent_class_ = op.op_class;
    return recent_direction_ = *known;
}

bool Directions::right_way(const Op &op, const Bio &bio) {
    switch (direction_of(op)) {
    case Direction::kRead: return bio.kind == IoKind::kRead;
    case Direction::kWrite: return bio.kind != IoKind::kRead;
    case Direction::kUnknown: break;
    }
    return true;
}

}  // namespace opline
