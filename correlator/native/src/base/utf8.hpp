// SPDX-License-Identifier: MIT
// Texts of a trace are bytes; tables and CSV hold UTF-8.
#pragma once
#include <string>
#include <string_view>

namespace opline {

// The text, with \xff for each byte outside of a well-formed character: equal to Python's decoding with
// `backslashreplace`. Different names stay different.
std::string valid_utf8(std::string_view text);

// Appends the text for people: characters obeyed by a terminal, and ill-formed bytes, are escaped (\x1b, \u202e), as in
// opline.talk.shown.
void append_shown(std::string &out, std::string_view text);

// Appends the text as a JSON string, in quotes: valid_utf8 for ill-formed bytes, escapes for characters obeyed by a
// terminal.
void append_json(std::string &out, std::string_view text);

inline bool is_ascii(std::string_view text) {
    char all = 0;
    for (const char c : text) all = static_cast<char>(all | c);
    return static_cast<signed char>(all) >= 0;
}

}  // namespace opline
