// SPDX-License-Identifier: MIT
// The string pool: every string that a dictionary column can hold, with a dense id. Id 0 is the empty string.
#pragma once
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace opline {

class StringPool {
  public:
    StringPool() { intern(""); }

    std::uint32_t intern(std::string_view s) {
        auto it = ids_.find(s);
        if (it != ids_.end()) return it->second;
        strings_.emplace_back(s);
        auto id = static_cast<std::uint32_t>(strings_.size() - 1);
        ids_.emplace(strings_.back(), id);
        return id;
    }
    const std::string &at(std::uint32_t id) const { return strings_[id]; }

    std::size_t size() const { return strings_.size(); }

    // Strings that were added since the last call, in order of their ids.
    std::vector<std::string> take_new() {
        std::vector<std::string> out(strings_.begin() + static_cast<std::ptrdiff_t>(taken_), strings_.end());
        taken_ = strings_.size();
        return out;
    }

  private:
    std::deque<std::string> strings_;  // a deque: the views in ids_ stay valid
    std::unordered_map<std::string_view, std::uint32_t> ids_;
    std::size_t taken_ = 0;
};

}  // namespace opline
