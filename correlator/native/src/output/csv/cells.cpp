// SPDX-License-Identifier: MIT
#include "output/csv/cells.hpp"

#include <algorithm>

#include "base/utf8.hpp"

namespace opline::csv {
namespace {

// No quoting or escaping needed, as for nearly all texts.
bool is_plain(std::string_view text) {
    unsigned char special = 0;
    for (const char c : text)
        special =
            static_cast<unsigned char>(special | (c & 0x80) | (c == ',') | (c == '"') | (c == '\n') | (c == '\r'));
    return special == 0;
}

}  // namespace

void add_text(std::string &out, std::string_view text) {
    if (is_plain(text)) {
        out.append(text);
        return;
    }
    const std::string mended = valid_utf8(text);
    if (mended.find_first_of(",\"\n\r") == std::string::npos) {
        out += mended;
        return;
    }
    out += '"';
    for (const char c : mended) {
        if (c == '"') out += '"';
        out += c;
    }
    out += '"';
}

char *put_text(char *at, std::string_view text) {
    if (is_plain(text)) return std::copy(text.begin(), text.end(), at);
    std::string out;
    add_text(out, text);
    return std::copy(out.begin(), out.end(), at);
}

}  // namespace opline::csv
