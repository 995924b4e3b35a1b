// SPDX-License-Identifier: MIT
#include "feed/line_fields.hpp"

#include <limits>

namespace opline::feed {
namespace {

bool hexadecimal(LineCursor &c, std::uint64_t &value) {
    std::uint64_t v = 0;
    int digits = 0;
    for (; !c.done(); ++digits, c.to(c.at() + 1)) {
        const char letter = *c.at();
        const int small = letter | 32;
        const int digit = is_digit(letter) ? letter - '0' : small >= 'a' && small <= 'f' ? small - 'a' + 10 : -1;
        if (digit < 0) break;
        v = v << 4 | static_cast<std::uint64_t>(digit);
    }
    value = v;
    return digits > 0 && digits <= 16;
}

// `8`, `-5`, `0x8`, `0xfffffffb (-5)`
bool value_of(LineCursor &c, std::int64_t &value) {
    if (!c.skip("0x")) return c.signed_number(value, 20);
    std::uint64_t bits;
    if (!hexadecimal(c, bits)) return false;
    value = static_cast<std::int64_t>(bits);
    const char *const behind = c.at();
    if (std::int64_t decimal; !c.skip(" (") || !c.signed_number(decimal, 20) || !c.skip(')')) c.to(behind);
    return true;
}

bool within(std::int64_t value, std::uint64_t &field) {
    field = static_cast<std::uint64_t>(value);
    return true;
}

bool within(std::int64_t value, std::uint32_t &field) {
    field = static_cast<std::uint32_t>(value);
    return field == static_cast<std::uint64_t>(value);
}

}  // namespace

bool fields_of(LineCursor &c, Line &line) {
    const Extra extra = kLineEvents[line.event].extra;
    std::int64_t value;
    if (!value_of(c, value) || !within(value, line.dev)) return false;
    bool sector = false, number = false, old_dev = extra != Extra::kOld, old_sector = old_dev;
    line.rwbs = {};
    line.error = 0;
    while (c.spaces() && !c.done()) {
        const char *const name = c.at();
        while (!c.done() && is_word(*c.at())) c.to(c.at() + 1);
        const std::string_view key(name, static_cast<std::size_t>(c.at() - name));
        if (key.empty() || !c.skip('=')) return false;
        if (key == "comm" || key == "cmd") break;  // of any letters
        if (key == "rwbs") {
            const char *const flags = c.at();
            while (!c.done() && *c.at() >= 'A' && *c.at() <= 'Z') c.to(c.at() + 1);
            line.rwbs = {flags, static_cast<std::size_t>(c.at() - flags)};
            continue;
        }
        if (!value_of(c, value)) return false;
        std::uint32_t few;
        if (key == "sector") {
            sector = within(value, line.sector);
        } else if (key == (extra == Extra::kSplit ? "new_sector" : "nr_sector")) {
            number = extra == Extra::kSplit || within(value, few);
            line.number = static_cast<std::uint64_t>(value);
        } else if (key == "old_dev") {
            old_dev = within(value, line.old_dev);
        } else if (key == "old_sector") {
            old_sector = within(value, line.old_sector);
        } else if (extra == Extra::kError && (key == "error" || key == "errors")) {
            line.error = static_cast<std::int32_t>(value);  // an int, of which hexadecimal digits show no sign
        }
    }
    return sector && number && old_dev && old_sector && !line.rwbs.empty();
}

}  // namespace opline::feed
