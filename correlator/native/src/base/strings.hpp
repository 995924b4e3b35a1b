// SPDX-License-Identifier: MIT
// The string pool: every string that a dictionary column can hold, with a dense id. Id 0 is the empty string.
#pragma once
#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace opline {

// Texts as short as threads' names, without a call.
inline bool same_text(std::string_view a, std::string_view b) {
    const std::size_t n = a.size();
    if (n != b.size()) return false;
    auto differ = [&](auto word) {  // both ends, with an overlap
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
        const auto id = static_cast<std::uint32_t>(size_);
        std::vector<std::string> &piece = pieces_[piece_of(id)];
        if (piece.empty()) piece.reserve(kFirst << piece_of(id));
        ids_.emplace(piece.emplace_back(s), id);
        ++size_;
        return id;
    }
    // Another thread may read a string if the string existed before the thread got the id.
    const std::string &at(std::uint32_t id) const {
        const unsigned piece = piece_of(id);
        return pieces_[piece][id - (((std::size_t{1} << piece) - 1) * kFirst)];
    }

    std::size_t size() const { return size_; }

    // Strings new since the last call, in order of their ids.
    std::vector<std::string> take_new() {
        std::vector<std::string> out;
        for (; taken_ < size_; ++taken_) out.push_back(at(static_cast<std::uint32_t>(taken_)));
        return out;
    }

  private:
    static constexpr std::size_t kFirst = 1024;
    // Each piece has room for twice as many strings as the piece before.
    static unsigned piece_of(std::uint32_t id) {
        return 63 - static_cast<unsigned>(__builtin_clzll(std::uint64_t{id} / kFirst + 1));
    }
    std::array<std::vector<std::string>, 23> pieces_;  // never moved: the views in ids_ stay valid
    std::unordered_map<std::string_view, std::uint32_t> ids_;
    std::size_t size_ = 0, taken_ = 0;
};

}  // namespace opline
