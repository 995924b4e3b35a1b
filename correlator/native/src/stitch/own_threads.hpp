// SPDX-License-Identifier: MIT
// Threads whose bios or requests are ops of their own, by their names: [bios], [requests] of docs/model.md.
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "base/flat_map.hpp"
#include "stitch/stitching.hpp"

namespace opline {

class OwnThreads {
  public:
    OwnThreads(StringPool &strings, const std::vector<BiosSpec> &specs) : strings_(strings), specs_(specs) {}

    // The model's group of threads with this name, from 1; 0: no group.
    std::uint32_t group_of(std::uint32_t comm) {
        auto [known, added] = known_.insert(comm);
        if (!added) return *known;
        auto named = [&](const std::string &glob) { return glob_match(glob, strings_.at(comm)); };
        const auto fits = [&](const BiosSpec &spec) {
            return std::any_of(spec.threads.begin(), spec.threads.end(), named) &&
                   std::none_of(spec.except.begin(), spec.except.end(), named);
        };
        const auto found = std::find_if(specs_.begin(), specs_.end(), fits);
        return *known = found == specs_.end() ? 0 : static_cast<std::uint32_t>(found - specs_.begin()) + 1;
    }
    // The model has groups of threads.
    bool any() const { return !specs_.empty(); }
    // Pool id of the op's class: the group's class in the model, and the kind of I/O.
    std::uint32_t class_of(std::uint32_t group, IoKind kind) {
        auto [id, added] = classes_.insert(std::uint64_t{group} << 32 | static_cast<std::uint32_t>(kind));
        if (added) *id = strings_.intern(specs_[group - 1].op_class + " " + std::string(io_kind_name(kind)));
        return *id;
    }

  private:
    StringPool &strings_;
    const std::vector<BiosSpec> &specs_;
    FlatMap<std::uint32_t, std::uint32_t> known_;    // comm → group
    FlatMap<std::uint64_t, std::uint32_t> classes_;  // group and kind → pool id
};

}  // namespace opline
