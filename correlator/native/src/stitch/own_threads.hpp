// SPDX-License-Identifier: MIT
// Threads whose bios or requests are ops of their own, by their names: [bios], [requests] of docs/model.md.
#pragma once
#include <algorithm>
#include <string>

#include "base/flat_map.hpp"
#include "stitch/stitching.hpp"

namespace opline {

class OwnThreads {
  public:
    OwnThreads(StringPool &strings, const BiosSpec &spec) : strings_(strings), spec_(spec) {}

    bool meant(std::uint32_t comm) {
        auto [known, added] = known_.insert(comm);
        if (!added) return *known == kMeant;
        auto named = [&](const std::string &glob) { return glob_match(glob, strings_.at(comm)); };
        const bool is_meant = std::any_of(spec_.threads.begin(), spec_.threads.end(), named) &&
                              std::none_of(spec_.except.begin(), spec_.except.end(), named);
        *known = is_meant ? kMeant : kNotMeant;
        return is_meant;
    }
    // The model says that there are some.
    bool any() const { return !spec_.op_class.empty(); }
    // Pool id: the class that the model says, and what the op does.
    std::uint32_t class_of(IoKind kind) {
        auto [id, added] = classes_.insert(static_cast<std::uint32_t>(kind));
        if (added) *id = strings_.intern(spec_.op_class + " " + std::string(io_kind_name(kind)));
        return *id;
    }

  private:
    static constexpr std::uint8_t kMeant = 1, kNotMeant = 2;
    StringPool &strings_;
    const BiosSpec &spec_;
    FlatMap<std::uint32_t, std::uint8_t> known_;  // comm → kMeant, kNotMeant
    FlatMap<std::uint32_t, std::uint32_t> classes_;
};

}  // namespace opline
