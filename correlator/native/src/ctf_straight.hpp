// SPDX-License-Identifier: MIT
// The short way through a program: most events of LTTng are fields of fixed size at bytes, little-endian, with strings between them.
// Such a program is a list of stretches, each of so many bytes with perhaps a string behind; it is run without looking at steps.
#pragma once
#include <cstdint>
#include <cstring>
#include <vector>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "ctf_plan.hpp"
#include "event.hpp"

namespace opline::ctf {

class Straight {
  public:
    Straight() = default;
    explicit Straight(const Program &);
    Straight(Straight &&) = default;
    Straight &operator=(Straight &&) = default;
    explicit operator bool() const { return !stretches_.empty(); }

    // The same as decode(), from a byte on. False: decode() has to say what there is; the cursor stays where it was.
    bool run(Cursor &c, Slot *slots) const {
        const std::uint8_t *p = c.packet + c.at / 8;
        const std::uint8_t *const end = c.packet + c.end / 8;
        for (const Stretch *s = stretches_.data(), *past = s + stretches_.size(); s != past; ++s) {
            if (s->align > 1) p = c.packet + ((static_cast<std::size_t>(p - c.packet) + s->align - 1) & ~std::size_t{s->align - 1u});
            if (end - p < s->room) return false;
            const Load *l = s->loads;
            for (const Load *last = l + s->integers; l != last; ++l) {
                std::uint64_t v;
                std::memcpy(&v, p + l->offset, 8);
                v <<= l->shift;
                Slot &slot = slots[l->slot];
                slot = l->like;
                slot.u = l->is_signed ? static_cast<std::uint64_t>(static_cast<std::int64_t>(v) >> l->shift) : v >> l->shift;
            }
            for (const Load *last = l + s->others; l != last; ++l) slots[l->slot] = other(*l, p + l->offset);
            p += s->bytes;
            if (!s->string) continue;
            const std::uint8_t *nul = find_nul(p, end);
            if (!nul) return false;
            if (s->string_slot >= 0) slots[s->string_slot] = Slot::of(std::string_view(reinterpret_cast<const char *>(p), static_cast<std::size_t>(nul - p)));
            p = nul + 1;
        }
        c.at = static_cast<std::uint64_t>(p - c.packet) * 8;
        return true;
    }

  private:
    struct Load {
        std::uint32_t offset, size;
        std::int32_t slot;
        Read::What what;
        bool is_signed;
        std::uint8_t shift;  // integers: what is left of 64 bits
        Slot like;           // integers: all but the value
    };
    struct Stretch {
        std::int64_t room = 0;               // bytes that must be there: integers take eight
        std::uint32_t align = 1, bytes = 0;  // in bytes
        const Load *loads = nullptr;         // integers first
        std::uint32_t integers = 0, others = 0;
        std::int32_t string_slot = -1;
        bool string = false;
    };
    static Slot other(const Load &l, const std::uint8_t *p) {
        if (l.what == Read::What::kReal32) {
            float f;
            std::memcpy(&f, p, 4);
            return Slot::of(static_cast<double>(f));
        }
        if (l.what == Read::What::kReal64) {
            double d;
            std::memcpy(&d, p, 8);
            return Slot::of(d);
        }
        const auto text = reinterpret_cast<const char *>(p);
        return Slot::of(std::string_view(text, l.what == Read::What::kText ? strnlen(text, l.size) : l.size));
    }
    static const std::uint8_t *find_nul(const std::uint8_t *p, const std::uint8_t *end) {
#ifdef __SSE2__
        for (; end - p >= 16; p += 16) {
            const auto bytes = _mm_loadu_si128(reinterpret_cast<const __m128i *>(p));
            const auto zeros = static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_setzero_si128())));
            if (zeros != 0) return p + __builtin_ctz(zeros);
        }
#endif
        return end > p ? static_cast<const std::uint8_t *>(std::memchr(p, 0, static_cast<std::size_t>(end - p))) : nullptr;
    }
    std::vector<Load> loads_;
    std::vector<Stretch> stretches_;
};

}  // namespace opline::ctf
