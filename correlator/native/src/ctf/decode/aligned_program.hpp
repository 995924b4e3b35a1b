// SPDX-License-Identifier: MIT
// A fast path for a program: most events of LTTng are fields of fixed size at bytes, little-endian, with strings
// between them. Such a program is a list of stretches, each of so many bytes with perhaps a string behind; it is run
// without looking at steps.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "ctf/decode/plan.hpp"
#include "event/event.hpp"

namespace opline::ctf {

class AlignedProgram {
  public:
    AlignedProgram() = default;
    // For a program after a header of `header` bytes.
    AlignedProgram(const Program &, std::uint32_t header);
    // Stretches refer to heap memory, which a move leaves in place.
    AlignedProgram(AlignedProgram &&) = default;
    AlignedProgram &operator=(AlignedProgram &&) = default;
    explicit operator bool() const { return !stretches_.empty(); }
    // The same as decode(), for the event with its header at byte `p` of a packet. Returns the end of the event, which
    // may lie behind the packet's content; the caller knows. Bytes before `end` may be read. nullptr: decode() must
    // decide.
    [[gnu::always_inline]] const std::uint8_t *run(const std::uint8_t *packet, const std::uint8_t *p,
                                                   const std::uint8_t *end, Slot *slots) {
        return __builtin_expect(first_.alone, 1) ? first_.run(p, end, slots) : run_all(packet, p, end, slots);
    }

  private:
    static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
    static constexpr std::size_t kProbe = 32;  // bytes of a string read at once
    // Two integers; a single integer is read twice.
    struct Pair {
        std::uint32_t offset[2], slot_at[2];  // in bytes
        alignas(16) std::uint64_t mask[2];    // the integer's bits among the eight bytes
        std::uint64_t sign[2];                // the sign bit of the integer
        std::uint64_t rest[2];                // the slot's other half
    };
    struct Other {
        std::uint32_t offset, size;
        std::int32_t slot;
        Read::What what;
    };
    template <class T>
    struct Range {
        const T *first = nullptr, *past = nullptr;
    };
    struct Stretch {
        std::int64_t room = kNever;  // all bytes that a read touches, the unneeded bytes included
        std::uint32_t bytes = 0;
        std::uint32_t past_nul = 1;  // from the string's NUL to the begin of the next stretch
        std::uint32_t guess = 0;     // the last string's length, with past_nul; and zeros() of its bytes:
        std::uint32_t past_guess = 0, nul_mask = 0, nul_bit = 1;
        std::int32_t string_slot = -1;
        Range<Pair> integers;
        Range<Other> others;
        std::uint16_t align = 1;                                // in bytes
        bool alone = true, string = false, has_others = false;  // alone: no other stretch, and no alignment

        [[gnu::always_inline]] const std::uint8_t *run(const std::uint8_t *p, const std::uint8_t *end, Slot *slots) {
            if (end - p < room) return nullptr;
            for (const Pair *l = integers.first, *past = integers.past; l != past; ++l) read(*l, p, slots);
            if (__builtin_expect(has_others, 0)) read_others(p, slots);
            if (string && string_slot >= 0) return past_string(p + bytes, end, &slots[string_slot]);
            p += bytes;
            return string ? past_string(p, end, nullptr) : p;
        }
        // Where the next event begins does not wait for the search, as long as the string is as long as the last: only
        // the guess leads there.
        [[gnu::always_inline]] const std::uint8_t *past_string(const std::uint8_t *p, const std::uint8_t *end,
                                                               Slot *wanted) {
            if (__builtin_expect((zeros(p) & nul_mask) != nul_bit, 0)) return past_other_string(p, end, wanted);
            if (wanted) text(p, guess, *wanted);
            return p + past_guess;
        }
        const std::uint8_t *past_other_string(const std::uint8_t *p, const std::uint8_t *end, Slot *wanted);
        void guess_from(std::uint32_t size);
        void read_others(const std::uint8_t *p, Slot *slots) const;
    };

    [[gnu::always_inline]] static void read(const Pair &l, const std::uint8_t *p, Slot *slots) {
        static_assert(sizeof(Slot) == 16 && offsetof(Slot, u) == 0 && offsetof(Slot, size) == 8);
        auto at = reinterpret_cast<char *>(slots);
#ifdef __SSE2__
        auto pair = [](const std::uint64_t *of) { return _mm_load_si128(reinterpret_cast<const __m128i *>(of)); };
        auto eight = [p](std::uint32_t offset) {
            return _mm_loadl_epi64(reinterpret_cast<const __m128i *>(p + offset));
        };
        const __m128i sign = pair(l.sign), rest = pair(l.rest);
        __m128i v = _mm_and_si128(_mm_unpacklo_epi64(eight(l.offset[0]), eight(l.offset[1])), pair(l.mask));
        v = _mm_sub_epi64(_mm_xor_si128(v, sign), sign);
        _mm_storeu_si128(reinterpret_cast<__m128i *>(at + l.slot_at[0]), _mm_unpacklo_epi64(v, rest));
        _mm_storeu_si128(reinterpret_cast<__m128i *>(at + l.slot_at[1]), _mm_unpackhi_epi64(v, rest));
#else
        for (int i = 0; i < 2; ++i) {
            std::uint64_t v;
            std::memcpy(&v, p + l.offset[i], 8);
            v = ((v & l.mask[i]) ^ l.sign[i]) - l.sign[i];
            std::memcpy(at + l.slot_at[i], &v, 8);
            std::memcpy(at + l.slot_at[i] + 8, &l.rest[i], 8);
        }
#endif
    }
    // In place: a slot built elsewhere and copied would stall on its own bytes.
    static void text(const std::uint8_t *begin, std::size_t size, Slot &slot) {
        slot.s = reinterpret_cast<const char *>(begin);
        slot.size = static_cast<std::uint32_t>(size);
        slot.kind = Slot::Kind::kString;
    }
    // A bit for each of kProbe bytes: set if the byte is 0.
    [[gnu::always_inline]] static std::uint32_t zeros(const std::uint8_t *p) {
        static_assert(kProbe == 32);
#ifdef __SSE2__
        auto half = [](const std::uint8_t *at) {
            const auto bytes = _mm_loadu_si128(reinterpret_cast<const __m128i *>(at));
            return static_cast<std::uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_setzero_si128())));
        };
        return half(p) | half(p + 16) << 16;
#else
        std::uint32_t found = 0;
        for (std::size_t i = 0; i < kProbe; ++i) found |= static_cast<std::uint32_t>(p[i] == 0) << i;
        return found;
#endif
    }
    struct Part;
    void lay_down(const std::vector<Part> &);
    const std::uint8_t *run_all(const std::uint8_t *packet, const std::uint8_t *p, const std::uint8_t *end,
                                Slot *slots);

    Stretch first_;
    std::vector<Stretch> stretches_;
    std::vector<Pair> integers_;
    std::vector<Other> others_;
};

}  // namespace opline::ctf
