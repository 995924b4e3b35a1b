// SPDX-License-Identifier: MIT
#include "ctf/decode/plan.hpp"

#include <algorithm>
#include <cstring>

namespace opline::ctf {
namespace {

[[gnu::always_inline]] inline std::uint64_t load(const std::uint8_t *p, std::uint32_t size) {
    switch (size) {
    case 1: return *p;
    case 2: {
        std::uint16_t v;
        std::memcpy(&v, p, 2);
        return v;
    }
    case 4: {
        std::uint32_t v;
        std::memcpy(&v, p, 4);
        return v;
    }
    case 8: {
        std::uint64_t v;
        std::memcpy(&v, p, 8);
        return v;
    }
    default: break;
    }
    std::uint64_t v = 0;
    for (std::uint32_t i = size; i-- > 0;) v = v << 8 | p[i];
    return v;
}

std::int64_t sign_extend(std::uint64_t v, std::uint32_t bits) {
    return bits >= 64 ? static_cast<std::int64_t>(v) : static_cast<std::int64_t>(v << (64 - bits)) >> (64 - bits);
}

Slot text_slot(const std::uint8_t *p, std::size_t size) {
    auto s = reinterpret_cast<const char *>(p);
    return Slot::of(std::string_view(s, strnlen(s, size)));
}

}  // namespace

std::uint64_t read_bits(const std::uint8_t *packet, std::uint64_t at, std::uint32_t size, bool big_endian) {
    std::uint64_t v = 0;
    if (at % 8 == 0 && size % 8 == 0) {
        const std::uint8_t *p = packet + at / 8;
        const std::uint32_t n = size / 8;
        if (!big_endian) return load(p, n);
        for (std::uint32_t i = 0; i < n; ++i) v = v << 8 | p[i];
        return v;
    }
    // Little-endian: bit 0 of a byte comes first; big-endian: bit 7 does.
    for (std::uint32_t i = 0; i < size; ++i) {
        const std::uint64_t bit = at + i;
        const std::uint8_t byte = packet[bit / 8];
        if (big_endian) v = v << 1 | (byte >> (7 - bit % 8) & 1u);
        else v |= static_cast<std::uint64_t>(byte >> (bit % 8) & 1u) << i;
    }
    return v;
}

std::uint64_t read_number(const std::uint8_t *packet, std::uint64_t at, std::uint32_t size, bool big_endian,
                          bool reversed, bool is_signed, bool boolean) {
    std::uint64_t v = read_bits(packet, at, size, big_endian);
    if (reversed) {
        std::uint64_t turned = 0;
        for (std::uint32_t i = 0; i < size; ++i) turned = turned << 1 | (v >> i & 1u);
        v = turned;
    }
    if (boolean) return v != 0;
    return is_signed ? static_cast<std::uint64_t>(sign_extend(v, size)) : v;
}

bool read_leb(Cursor &c, bool is_signed, std::uint64_t &value, std::uint32_t &bytes) {
    value = 0;
    for (bytes = 0; c.end >= c.at && c.end - c.at >= 8;) {
        const std::uint64_t byte = c.packet[c.at / 8];
        const std::uint32_t shift = 7 * bytes++;
        c.at += 8;
        if (shift > 63) return false;
        value |= (byte & 0x7f) << shift;
        if (byte & 0x80) continue;
        if (is_signed && (byte & 0x40) && shift + 7 < 64) value |= ~std::uint64_t{0} << (shift + 7);
        return true;
    }
    return false;
}

bool in_ranges(const std::vector<Range> &ranges, std::uint64_t value, bool is_signed) {
    return std::any_of(ranges.begin(), ranges.end(), [&](const Range &r) {
        if (is_signed) return static_cast<std::int64_t>(value) >= r.low && static_cast<std::int64_t>(value) <= r.high;
        return value >= static_cast<std::uint64_t>(r.low) && value <= static_cast<std::uint64_t>(r.high);
    });
}

namespace {

using Registers = std::vector<std::uint64_t>;

void keep(std::uint64_t v, bool is_signed, std::int32_t slot, std::int32_t reg, Slot *slots, Registers &registers) {
    if (slot >= 0) slots[slot] = is_signed ? Slot::of(static_cast<std::int64_t>(v)) : Slot::of(v);
    if (reg >= 0) registers[static_cast<std::size_t>(reg)] = v;
}

double real(const void *bits, bool is_float) {
    float f;
    double d;
    if (!is_float) return std::memcpy(&d, bits, sizeof d), d;
    std::memcpy(&f, bits, sizeof f);
    return static_cast<double>(f);
}

// Fields of whole bytes at known places.
void read_run(const Step &s, const std::uint8_t *base, Slot *slots, Registers &registers) {
    for (const Read &r : s.reads) {
        const std::uint8_t *p = base + r.offset;
        switch (r.what) {
        case Read::What::kUnsigned: keep(load(p, r.size), false, r.slot, r.reg, slots, registers); break;
        case Read::What::kSigned: {
            const auto v = sign_extend(load(p, r.size), r.size * 8);
            keep(static_cast<std::uint64_t>(v), true, r.slot, r.reg, slots, registers);
            break;
        }
        case Read::What::kReal32: slots[r.slot] = Slot::of(real(p, true)); break;
        case Read::What::kReal64: slots[r.slot] = Slot::of(real(p, false)); break;
        case Read::What::kText: slots[r.slot] = text_slot(p, r.size); break;
        case Read::What::kBytes:
            slots[r.slot] = Slot::of(std::string_view(reinterpret_cast<const char *>(p), r.size));
            break;
        }
    }
}

bool read_string(const Step &s, Cursor &c, Slot *slots) {
    if (c.at >= c.end) return false;
    const std::uint8_t *p = c.packet + c.at / 8;
    const void *nul = std::memchr(p, 0, (c.end - c.at) / 8);
    if (!nul) return false;
    const auto size = static_cast<std::size_t>(static_cast<const std::uint8_t *>(nul) - p);
    if (s.slot >= 0) slots[s.slot] = Slot::of(std::string_view(reinterpret_cast<const char *>(p), size));
    c.at += (size + 1) * 8;
    return true;
}

bool read_bits_of(const Step &s, Cursor &c, Slot *slots, Registers &registers) {
    if (c.end < c.at || c.end - c.at < s.size_bits) return false;
    const auto v = read_number(c.packet, c.at, s.size_bits, s.big_endian, s.reversed, s.is_signed, s.boolean);
    c.at += s.size_bits;
    if (s.op == Step::Op::kInteger) {
        keep(v, s.is_signed, s.slot, s.reg, slots, registers);
    } else if (s.slot >= 0) {
        const auto v32 = static_cast<std::uint32_t>(v);
        slots[s.slot] = Slot::of(s.size_bits == 32 ? real(&v32, true) : real(&v, false));
    }
    return true;
}

bool read_variable_length(const Step &s, Cursor &c, Slot *slots, Registers &registers) {
    std::uint64_t v;
    std::uint32_t bytes;
    if (!read_leb(c, s.is_signed, v, bytes)) return false;
    keep(v, s.is_signed, s.slot, s.reg, slots, registers);
    if (s.slot >= 0) slots[s.slot].size = bytes;  // needed for a partial timestamp
    return true;
}

std::uint64_t elements(const Step &s, const Registers &registers) {
    return s.length_reg >= 0 ? registers[static_cast<std::size_t>(s.length_reg)] : s.count;
}

Slot last_of(const Step &s, const Cursor &c, std::uint64_t n) {
    if (n == 0) return {};
    const auto v =
        read_number(c.packet, c.at + (n - 1) * s.size_bits, s.size_bits, s.big_endian, s.reversed, s.is_signed, false);
    return s.is_signed ? Slot::of(static_cast<std::int64_t>(v)) : Slot::of(v);
}

bool read_block(const Step &s, Cursor &c, Slot *slots, const Registers &registers) {
    const std::uint64_t n = elements(s, registers);
    if (c.end < c.at || n > (c.end - c.at) / std::max(1u, s.size_bits)) return false;
    if (s.slot >= 0) slots[s.slot] = s.op == Step::Op::kText ? text_slot(c.packet + c.at / 8, n) : last_of(s, c, n);
    c.at += n * s.size_bits;
    return true;
}

bool repeat(const Step &s, Cursor &c, Slot *slots, Registers &registers) {
    const std::uint64_t n = elements(s, registers);
    if (n > c.end) return false;  // more elements than bits
    for (std::uint64_t i = 0; i < n; ++i) {
        const auto before = c.at;
        if (!decode(s.bodies[0], c, slots, registers)) return false;
        if (c.at == before) break;  // an element without a size: the remaining elements have none either
    }
    return true;
}

bool read_tagged(const Step &s, Cursor &c, Slot *slots, Registers &registers) {
    const auto tag = registers[static_cast<std::size_t>(s.length_reg)];
    std::size_t option = 0;
    while (option < s.ranges.size() && !in_ranges(s.ranges[option], tag, s.is_signed)) ++option;
    if (option < s.ranges.size()) return decode(s.bodies[option], c, slots, registers);
    return s.op == Step::Op::kOption;
}

}  // namespace

bool decode(const Program &program, Cursor &c, Slot *slots, std::vector<std::uint64_t> &registers) {
    for (const Step &s : program.steps) {
        bool good = true;
        switch (s.op) {
        case Step::Op::kAlign: c.at = (c.at + s.align_bits - 1) & ~std::uint64_t{s.align_bits - 1}; break;
        case Step::Op::kRun:
            if (c.end < c.at || c.end - c.at < std::uint64_t{s.bytes} * 8) return false;
            read_run(s, c.packet + c.at / 8, slots, registers);
            c.at += std::uint64_t{s.bytes} * 8;
            break;
        case Step::Op::kString: good = read_string(s, c, slots); break;
        case Step::Op::kInteger:
        case Step::Op::kReal: good = read_bits_of(s, c, slots, registers); break;
        case Step::Op::kLeb: good = read_variable_length(s, c, slots, registers); break;
        case Step::Op::kText:
        case Step::Op::kBlock: good = read_block(s, c, slots, registers); break;
        case Step::Op::kRepeat: good = repeat(s, c, slots, registers); break;
        case Step::Op::kVariant:
        case Step::Op::kOption: good = read_tagged(s, c, slots, registers); break;
        }
        if (!good) return false;
    }
    return c.at <= c.end;
}

}  // namespace opline::ctf
