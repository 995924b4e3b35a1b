// SPDX-License-Identifier: MIT
// The string pool: every string that a dictionary column can hold, with a dense id. Id 0 is the empty string.
#pragma once
#include <cstdint>
#include <cstring>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace opline {

// Texts as short as threads' names, without a call.
inline bool same_text(std::string_view a, std::string_view b) {
    const std::size_t n = a.size();
    if (n != b.size()) return false;
    auto differ = [&](auto word) {  // both ends; they overlap
        decltype(word) x, y, u, v;
        std::memcpy(&x, a.data(), sizeof word);
        std::memcpy(&y, b.data(), sizeof word);
        std::memcpy(&u, a.data() + n - sizeof word, sizeof word);
        std::memcpy(&v, b.data() + n - sizeof word, sizeof word);
        return ((x ^ y) | (u ^ v)) != 0;
    };
    if (n > 16) return a == b;
    if (n >= 8) return !differ(std::uint64_t{});
    if (n >= 4) return !differ(std::uint32_t{});
    if (n >= 2) return !differ(std::uint16_t{});
    return n == 0 || a[0] == b[0];
}

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
