// SPDX-License-Identifier: MIT
// What became of a trace's events.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "binding/classes.hpp"

namespace opline {

// By class name: a trace can have several classes with one name.
inline std::map<std::string, FateCounts> fates(const std::vector<std::unique_ptr<BoundClass>> &classes) {
    std::map<std::string, FateCounts> out;
    for (const auto &c : classes)
        for (std::size_t f = 0; f < c->fates.size(); ++f) out[c->name][f] += c->fates[f];
    return out;
}

}  // namespace opline
