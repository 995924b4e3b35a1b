// SPDX-License-Identifier: MIT
#include "csv_cells.hpp"

#include "utf8.hpp"

namespace opline::csv {
namespace {

// Nothing to be done with it, as with nearly all texts.
bool is_plain(std::string_view text) {
    unsigned char special = 0;
    for (const char c : text) special = static_cast<unsigned char>(special | (c & 0x80) | (c == ',') | (c == '"') | (c == '\n') | (c == '\r'));
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
    if (is_plain(text)) {
        std::memcpy(at, text.data(), text.size());
        return at + text.size();
    }
    std::string out;
    add_text(out, text);
    std::memcpy(at, out.data(), out.size());
    return at + out.size();
}

}  // namespace opline::csv
