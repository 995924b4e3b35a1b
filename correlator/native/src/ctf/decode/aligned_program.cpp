// SPDX-License-Identifier: MIT
#include "ctf/decode/aligned_program.hpp"

namespace opline::ctf {
namespace {

constexpr std::uint32_t kMaxStretch = 1u << 26;  // bytes
constexpr std::uint32_t kMaxAlign = 1u << 15;    // bytes

// The half of a slot behind an integer.
std::uint64_t rest_of(const Slot &slot) {
    std::uint64_t rest = 0;
    std::memcpy(&rest, &slot.size, sizeof slot.size);
    std::memcpy(reinterpret_cast<char *>(&rest) + offsetof(Slot, kind) - offsetof(Slot, size), &slot.kind,
                sizeof slot.kind);
    return rest;
}

}  // namespace

void AlignedProgram::Stretch::guess_from(std::uint32_t size) {
    guess = size;
    past_guess = size + past_nul;
    nul_bit = 1;
    nul_mask = 0;  // not among kProbe bytes: never
    if (size >= kProbe) return;
    nul_bit = 1u << size;
    nul_mask = nul_bit | (nul_bit - 1);
}

const std::uint8_t *AlignedProgram::Stretch::past_other_string(const std::uint8_t *p, const std::uint8_t *end,
                                                               Slot *wanted) {
    std::uint32_t size = 0;
    if (const std::uint32_t near = zeros(p)) {
        size = static_cast<std::uint32_t>(__builtin_ctz(near));
    } else {
        const void *nul = end > p ? std::memchr(p, 0, static_cast<std::size_t>(end - p)) : nullptr;
        if (!nul) return nullptr;
        size = static_cast<std::uint32_t>(static_cast<const std::uint8_t *>(nul) - p);
    }
    if (wanted) text(p, size, *wanted);
    // A long string with the last string's length: the same guess. The compiler must not know that both are equal.
    std::uint32_t expected = guess;
    __asm__("" : "+r"(expected));
    if (size != expected) guess_from(size);
    else size = guess;
    return p + size + past_nul;
}

void AlignedProgram::Stretch::read_others(const std::uint8_t *p, Slot *slots) const {
    for (const Other *l = others.first; l != others.past; ++l) {
        const std::uint8_t *at = p + l->offset;
        Slot &slot = slots[l->slot];
        if (l->what == Read::What::kReal32) {
            float f;
            std::memcpy(&f, at, 4);
            slot = Slot::of(static_cast<double>(f));
        } else if (l->what == Read::What::kReal64) {
            double d;
            std::memcpy(&d, at, 8);
            slot = Slot::of(d);
        } else if (l->what == Read::What::kBytes) {
            text(at, l->size, slot);
        } else if (l->size < kProbe) {  // the name of a thread
            text(at, static_cast<std::size_t>(__builtin_ctz(zeros(at) | 1u << l->size)), slot);
        } else {
            text(at, strnlen(reinterpret_cast<const char *>(at), l->size), slot);
        }
    }
}

const std::uint8_t *AlignedProgram::run_all(const std::uint8_t *packet, const std::uint8_t *p, const std::uint8_t *end,
                                            Slot *slots) {
    for (Stretch &s : stretches_) {
        const std::size_t beyond = static_cast<std::size_t>(p - packet) & (s.align - 1u);
        if (beyond != 0) p += s.align - beyond;
        p = s.run(p, end, slots);
        if (!p) return nullptr;
    }
    return p;
}

// A stretch during the reading of its program: its parts go into two lists for all stretches at the end.
struct AlignedProgram::Part {
    Stretch stretch;
    std::vector<Pair> integers;
    std::vector<Other> others;

    // False: the program has a field unsuitable for any stretch.
    bool take(const Step &run) {
        for (const Read &r : run.reads) {
            const bool integer = r.what == Read::What::kSigned || r.what == Read::What::kUnsigned;
            if (r.reg >= 0 || (integer && (r.size == 0 || r.size > 8))) return false;
            if (r.slot < 0) continue;
            if (integer) take_integer(r);
            else others.push_back({stretch.bytes + r.offset, r.size, r.slot, r.what});
        }
        stretch.bytes += run.bytes;
        return stretch.bytes <= kMaxStretch;
    }

    bool only_bytes() const { return !stretch.string && stretch.align <= 1 && integers.empty() && others.empty(); }

  private:
    // Integers are read in pairs; a single integer is read twice.
    void take_integer(const Read &r) {
        const bool is_signed = r.what == Read::What::kSigned;
        const std::uint64_t mask = ~std::uint64_t{0} >> (64 - 8 * r.size), sign = is_signed ? mask ^ (mask >> 1) : 0;
        const bool second = !integers.empty() && integers.back().slot_at[0] == integers.back().slot_at[1];
        if (!second) integers.emplace_back();
        for (int i = second ? 1 : 0; i < 2; ++i) {
            Pair &pair = integers.back();
            pair.offset[i] = stretch.bytes + r.offset;
            pair.slot_at[i] = static_cast<std::uint32_t>(static_cast<std::size_t>(r.slot) * sizeof(Slot));
            pair.mask[i] = mask;
            pair.sign[i] = sign;
            pair.rest[i] = rest_of(is_signed ? Slot::of(std::int64_t{0}) : Slot::of(std::uint64_t{0}));
        }
    }
};

// Stays empty where the program has anything else.
AlignedProgram::AlignedProgram(const Program &program, std::uint32_t header) {
    std::vector<Part> parts(1);
    parts[0].stretch.bytes = header;
    for (const Step &s : program.steps) {
        switch (s.op) {
        case Step::Op::kAlign:
            if (s.align_bits % 8 != 0 || s.align_bits / 8 > kMaxAlign) return;
            if (s.align_bits == 8) break;
            parts.emplace_back();
            parts.back().stretch.align = static_cast<std::uint16_t>(s.align_bits / 8);
            break;
        case Step::Op::kRun:
            if (parts.back().stretch.string) parts.emplace_back();
            if (!parts.back().take(s)) return;
            break;
        case Step::Op::kString:
            if (parts.back().stretch.string) parts.emplace_back();
            parts.back().stretch.string = true;
            parts.back().stretch.string_slot = s.slot;
            break;
        default: return;
        }
    }
    // Unwanted bytes after a string are skipped together with the string.
    for (std::size_t i = parts.size(); i-- > 1;) {
        if (!parts[i].only_bytes() || !parts[i - 1].stretch.string) continue;
        parts[i - 1].stretch.past_nul += parts[i].stretch.bytes;
        parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(i));
    }
    lay_down(parts);
}

void AlignedProgram::lay_down(const std::vector<Part> &parts) {
    for (const Part &part : parts) {
        integers_.insert(integers_.end(), part.integers.begin(), part.integers.end());
        others_.insert(others_.end(), part.others.begin(), part.others.end());
    }
    const Pair *integers = integers_.data();
    const Other *others = others_.data();
    for (const Part &part : parts) {
        Stretch stretch = part.stretch;
        stretch.integers = {integers, integers + part.integers.size()};
        stretch.others = {others, others + part.others.size()};
        integers = stretch.integers.past;
        others = stretch.others.past;
        stretch.has_others = !part.others.empty();
        stretch.alone = parts.size() == 1 && stretch.align == 1;
        const std::size_t beyond = stretch.string || !part.others.empty() ? kProbe : part.integers.empty() ? 0 : 8;
        stretch.room = stretch.bytes + static_cast<std::int64_t>(beyond);
        stretch.guess_from(0);
        stretches_.push_back(stretch);
    }
    first_ = stretches_.front();
}

}  // namespace opline::ctf
