// SPDX-License-Identifier: MIT
// Goes through a line of text from left to right. Private to the feeds of text.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string_view>

namespace opline::feed {

inline bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
inline bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }
inline bool is_word(char c) { return is_digit(c) || c == '_' || static_cast<unsigned char>((c | 32) - 'a') < 26; }

// Walks through a text. A function that does not find its text leaves the cursor in place.
class LineCursor {
  public:
    explicit LineCursor(std::string_view text) : at_(text.data()), end_(text.data() + text.size()) {}
    const char *at() const { return at_; }
    const char *end() const { return end_; }
    void to(const char *place) { at_ = place; }
    bool done() const { return at_ == end_; }
    bool next_is(char c) const { return at_ != end_ && *at_ == c; }
    bool next_is_digit() const { return at_ != end_ && is_digit(*at_); }
    bool skip(char c) {
        if (!next_is(c)) return false;
        ++at_;
        return true;
    }
    bool skip(std::string_view text) {
        if (static_cast<std::size_t>(end_ - at_) < text.size() || std::memcmp(at_, text.data(), text.size()) != 0)
            return false;
        at_ += text.size();
        return true;
    }
    bool spaces() {
        const char *from = at_;
        while (at_ != end_ && is_space(*at_)) ++at_;
        return at_ != from;
    }
    void token() {
        while (at_ != end_ && !is_space(*at_)) ++at_;
    }
    // At most `most` digits, without a digit afterwards.
    bool number(std::uint64_t &value, int most) {
        constexpr std::ptrdiff_t kSure = 19;  // any number of so many digits is less than 2^64
        const char *const sure = end_ - at_ > kSure ? at_ + kSure : end_;
        const char *place = at_;
        std::uint64_t v = 0;
        for (; place != sure && is_digit(*place); ++place) v = v * 10 + static_cast<std::uint64_t>(*place - '0');
        for (; place != end_ && is_digit(*place); ++place) {
            const auto digit = static_cast<std::uint64_t>(*place - '0');
            if (v > (std::numeric_limits<std::uint64_t>::max() - digit) / 10) return false;
            v = v * 10 + digit;
        }
        if (place == at_ || place - at_ > most) return false;
        at_ = place;
        value = v;
        return true;
    }
    bool signed_number(std::int64_t &value, int most) {
        const char *from = at_;
        const bool negative = skip('-');
        std::uint64_t v;
        if (!number(v, most)) {
            at_ = from;
            return false;
        }
        value = negative ? -static_cast<std::int64_t>(v) : static_cast<std::int64_t>(v);
        return true;
    }

  private:
    const char *at_, *end_;
};

}  // namespace opline::feed
