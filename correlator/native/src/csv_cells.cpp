// SPDX-License-Identifier: MIT
#include "csv_cells.hpp"

#include "utf8.hpp"

namespace opline::csv {
namespace {

enum : std::uint8_t { kPlain = 0, kWantsQuotes = 1, kNotAscii = 2 };

struct Kinds {
    std::uint8_t of[256];
    constexpr Kinds() : of() {
        for (int c = 128; c < 256; ++c) of[c] = kNotAscii;
        for (const char c : {',', '"', '\n', '\r'}) of[static_cast<unsigned char>(c)] = kWantsQuotes;
    }
};
constexpr Kinds kKinds;

}  // namespace

void add_text(std::string &out, std::string_view text) {
    unsigned found = kPlain;
    for (const char c : text) found |= kKinds.of[static_cast<unsigned char>(c)];
    if (found == kPlain) {
        out.append(text);
        return;
    }
    std::string mended;
    if ((found & kNotAscii) != 0) text = mended = valid_utf8(text);
    if ((found & kWantsQuotes) == 0) {
        out.append(text);
        return;
    }
    out += '"';
    for (const char c : text) {
        if (c == '"') out += '"';
        out += c;
    }
    out += '"';
}

}  // namespace opline::csv
