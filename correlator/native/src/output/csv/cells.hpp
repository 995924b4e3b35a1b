// SPDX-License-Identifier: MIT
// Cells of CSV by RFC 4180: the only place that knows how a number or a text is written.
#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace opline::csv {

constexpr std::size_t kMaxNumber = 20;         // characters
constexpr std::size_t kRoom = kMaxNumber + 1;  // bytes that put_number() may write

struct DigitPairs {
    char text[200];
    constexpr DigitPairs() : text() {
        for (int i = 0; i < 100; ++i) {
            text[2 * i] = static_cast<char>('0' + i / 10);
            text[2 * i + 1] = static_cast<char>('0' + i % 10);
        }
    }
};
inline constexpr DigitPairs kDigitPairs;

// Returns the end. Needs kRoom bytes. std::to_chars takes twice as long.
inline char *put_number(char *at, std::uint64_t v) {
    char digits[2 * kMaxNumber];
    char *first = digits + kMaxNumber;
    const auto pair = [&](std::uint64_t below_100) { std::memcpy(first -= 2, kDigitPairs.text + 2 * below_100, 2); };
    while (v > UINT32_MAX) {
        pair(v % 100);
        v /= 100;
    }
    auto small = static_cast<std::uint32_t>(v);
    while (small >= 100) {
        pair(small % 100);
        small /= 100;
    }
    pair(small);
    if (small < 10) ++first;
    std::memcpy(at, first, kMaxNumber);
    return at + (digits + kMaxNumber - first);
}

inline char *put_number(char *at, std::int64_t v) {
    if (v >= 0) return put_number(at, static_cast<std::uint64_t>(v));
    *at = '-';
    return put_number(at + 1, 0 - static_cast<std::uint64_t>(v));  // 19 digits at most
}

template <class T>
void add_number(std::string &out, T v) {
    char b[kRoom];
    out.append(b, put_number(b, v));
}

// With quotes if the text has a comma, a quote or a line's end. A byte outside of UTF-8 is written as \xff, as in the
// tables.
void add_text(std::string &out, std::string_view text);
// The same; returns the end. Needs text_room(text) bytes.
char *put_text(char *at, std::string_view text);
constexpr std::size_t text_room(std::string_view text) { return 4 * text.size() + 2; }

}  // namespace opline::csv
