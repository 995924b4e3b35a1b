// SPDX-License-Identifier: MIT
#include "base/utf8.hpp"

#include <cstdint>

namespace opline {
namespace {

// Bytes of the well-formed character at `at`; 0: ill-formed, and `bad` bytes are one maximal subpart (Unicode, table
// 3-7).
std::size_t character_at(std::string_view s, std::size_t at, std::size_t &bad) {
    const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(s[i]); };
    const std::uint8_t first = byte(at);
    if (first < 0x80) return 1;
    bad = 1;
    std::size_t n = 0;
    std::uint8_t low = 0x80, high = 0xbf;  // of the second byte
    if (first >= 0xc2 && first <= 0xdf) {
        n = 2;
    } else if (first >= 0xe0 && first <= 0xef) {
        n = 3;
        if (first == 0xe0) low = 0xa0;
        if (first == 0xed) high = 0x9f;
    } else if (first >= 0xf0 && first <= 0xf4) {
        n = 4;
        if (first == 0xf0) low = 0x90;
        if (first == 0xf4) high = 0x8f;
    } else {
        return 0;
    }
    for (std::size_t i = 1; i < n; ++i, low = 0x80, high = 0xbf) {
        if (at + i >= s.size() || byte(at + i) < low || byte(at + i) > high) return 0;
        bad = i + 1;
    }
    return n;
}

// The code of the well-formed character of n bytes; any code for four bytes, as a terminal obeys none of these.
std::uint32_t code_at(std::string_view s, std::size_t at, std::size_t n) {
    const auto low = [&](std::size_t i, unsigned mask) { return static_cast<std::uint8_t>(s[at + i]) & mask; };
    if (n == 1) return low(0, 0xff);
    if (n == 2) return low(0, 0x1f) << 6 | low(1, 0x3f);
    if (n == 3) return low(0, 0x0f) << 12 | low(1, 0x3f) << 6 | low(2, 0x3f);
    return 0x10000;
}

// A character that a terminal obeys.
bool is_control(std::uint32_t code) {
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x61c || code == 0x200e || code == 0x200f ||
           (code >= 0x2028 && code < 0x202f) || (code >= 0x2066 && code < 0x206a);
}

void append_hex(std::string &out, std::uint32_t code, int digits) {
    static const char kHex[] = "0123456789abcdef";
    for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) out += kHex[(code >> shift) & 15];
}

// Appends ill-formed bytes, each as two digits after ``before``.
void append_bytes(std::string &out, std::string_view bytes, std::string_view before) {
    for (const char c : bytes) {
        out += before;
        append_hex(out, static_cast<std::uint8_t>(c), 2);
    }
}

}  // namespace

std::string valid_utf8(std::string_view text) {
    std::string out;
    out.reserve(text.size() + 8);
    for (std::size_t at = 0, bad = 1; at < text.size();) {
        if (const std::size_t n = character_at(text, at, bad)) {
            out.append(text.substr(at, n));
            at += n;
        } else {
            append_bytes(out, text.substr(at, bad), "\\x");
            at += bad;
        }
    }
    return out;
}

void append_shown(std::string &out, std::string_view text) {
    const auto escape = [&](std::uint32_t code, int digits) {
        out += digits == 2 ? "\\x" : "\\u";
        append_hex(out, code, digits);
    };
    for (std::size_t at = 0, bad = 1; at < text.size();) {
        const std::size_t n = character_at(text, at, bad);
        if (n == 0) {
            append_bytes(out, text.substr(at, bad), "\\x");
            at += bad;
            continue;
        }
        if (const std::uint32_t code = code_at(text, at, n); is_control(code)) escape(code, code < 0x100 ? 2 : 4);
        else out.append(text.substr(at, n));
        at += n;
    }
}

void append_json(std::string &out, std::string_view text) {
    out += '"';
    for (std::size_t at = 0, bad = 1; at < text.size();) {
        const std::size_t n = character_at(text, at, bad);
        if (n == 0) {
            append_bytes(out, text.substr(at, bad), "\\\\x");
            at += bad;
            continue;
        }
        if (const std::uint32_t code = code_at(text, at, n); is_control(code)) {
            out += "\\u";
            append_hex(out, code, 4);
        } else {
            if (text[at] == '"' || text[at] == '\\') out += '\\';
            out.append(text.substr(at, n));
        }
        at += n;
    }
    out += '"';
}

}  // namespace opline
