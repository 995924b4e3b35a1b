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
    // Stretches refer to loads, which stay where they are when they are moved.
    Straight(Straight &&) = default;
    Straight &operator=(Straight &&) = default;
    explicit operator bool() const { return !stretches_.empty(); }

    // The same as decode(), from the byte `p` of a packet on: where the event ends. nullptr: decode() has to say what there is.
    const std::uint8_t *run(const std::uint8_t *packet, const std::uint8_t *p, const std::uint8_t *end, Slot *slots) const {
        for (const Stretch &s : stretches_) {
            if (s.align > 1) p = packet + ((static_cast<std::size_t>(p - packet) + s.align - 1) & ~std::size_t{s.align - 1u});
            if (end - p < s.room) return nullptr;
            const Load *l = s.loads;
            for (const Load *past = s.past_integers; l != past; ++l) {
                std::uint64_t v;
                std::memcpy(&v, p + l->offset, 8);
                v &= l->mask;
                Slot &slot = slots[l->slot];
                slot.u = (v ^ l->sign) - l->sign;
                slot.kind = l->kind;
            }
            for (const Load *past = s.past_others; l != past; ++l) other(*l, p + l->offset, slots[l->slot]);
            p += s.bytes;
            if (!s.string) continue;
            const std::uint8_t *nul = find_nul(p, end);
            if (!nul) return nullptr;
            if (s.string_slot >= 0) text(reinterpret_cast<const char *>(p), static_cast<std::size_t>(nul - p), slots[s.string_slot]);
            p = nul + 1;
        }
        return p;
    }

  private:
    struct Load {
        std::uint32_t offset, size;
        std::int32_t slot;
        Read::What what;
        Slot::Kind kind;           // of integers, as the next ones
        std::uint64_t mask, sign;  // the bits of eight bytes that are its own; of these the one that says that it is negative
    };
    struct Stretch {
        std::int64_t room = 0;               // bytes that must be there: integers take eight
        std::uint32_t align = 1, bytes = 0;  // in bytes
        const Load *loads = nullptr, *past_integers = nullptr, *past_others = nullptr;
        std::int32_t string_slot = -1;
        bool string = false;
    };
    // In place: a slot that is put together elsewhere and copied waits for its own bytes.
    static void text(const char *begin, std::size_t size, Slot &slot) {
        slot.s = begin;
        slot.size = static_cast<std::uint32_t>(size);
        slot.kind = Slot::Kind::kString;
    }
    static void other(const Load &, const std::uint8_t *p, Slot &);
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
