// SPDX-License-Identifier: MIT
// The short way through a program: most events of LTTng are fields of fixed size at bytes, little-endian, with strings between them.
// Such a program is a list of stretches, each of so many bytes with perhaps a string behind; it is run without looking at steps.
// Events that are about the same as the one before say so with the same bytes at the same place: these are not read again.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
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
    // Of a program that follows a header of so many bytes.
    Straight(const Program &, std::uint32_t header);
    // Stretches refer to what is read, which stays where it is when it is moved.
    Straight(Straight &&) = default;
    Straight &operator=(Straight &&) = default;
    explicit operator bool() const { return !stretches_.empty(); }
    // Where in an event all that is wanted of it lies, and where it ends; empty where that is more than integers within two times 16 bytes, or not always
    // there, or the event is long. Of events of two programs for which this is equal, equal bytes there make equal slots.
    std::vector<std::uint64_t> layout() const;

    // The same as decode(), of the event whose header is at the byte `p` of a packet: where it ends. It may lie behind the packet's content, which the
    // caller knows; bytes before `end` may be looked at. nullptr: decode() has to say what there is.
    [[gnu::always_inline]] const std::uint8_t *run(const std::uint8_t *packet, const std::uint8_t *p, const std::uint8_t *end, Slot *slots) {
        return __builtin_expect(first_.alone, 1) ? first_.run(p, end, slots) : run_all(packet, p, end, slots);
    }
    static constexpr std::ptrdiff_t kRepeatRoom = 256;  // bytes
    class Repeats;

  private:
    static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
    static constexpr std::size_t kProbe = 32;  // bytes of a string that are looked at at once
    // Two integers: with only one, it is read twice.
    struct Pair {
        std::uint32_t offset[2], slot_at[2];  // in bytes
        alignas(16) std::uint64_t mask[2];    // the bits of eight bytes that are its own
        std::uint64_t sign[2];                // of these the one that says that it is negative
        std::uint64_t rest[2];                // the slot's other half
    };
    struct Sixteen {  // bytes
#ifdef __SSE2__
        __m128i v;
        static Sixteen at(const std::uint8_t *p) { return {_mm_loadu_si128(reinterpret_cast<const __m128i *>(p))}; }
        Sixteen operator^(Sixteen o) const { return {_mm_xor_si128(v, o.v)}; }
        Sixteen operator&(Sixteen o) const { return {_mm_and_si128(v, o.v)}; }
        Sixteen operator|(Sixteen o) const { return {_mm_or_si128(v, o.v)}; }
        bool none() const { return _mm_movemask_epi8(_mm_cmpeq_epi8(v, _mm_setzero_si128())) == 0xffff; }
#else
        std::uint64_t low, high;
        static Sixteen at(const std::uint8_t *p) {
            Sixteen out;
            std::memcpy(&out, p, sizeof out);
            return out;
        }
        Sixteen operator^(Sixteen o) const { return {low ^ o.low, high ^ o.high}; }
        Sixteen operator&(Sixteen o) const { return {low & o.low, high & o.high}; }
        Sixteen operator|(Sixteen o) const { return {low | o.low, high | o.high}; }
        bool none() const { return (low | high) == 0; }
#endif
    };
    // Bytes of an event, of which those with ones are looked at.
    struct Windows {
        std::uint8_t ones[2][sizeof(Sixteen)] = {};
        std::uint32_t at[2] = {};
    };
    struct Other {
        std::uint32_t offset, size;
        std::int32_t slot;
        Read::What what;
    };
    struct Stretch {
        std::int64_t room = kNever;  // bytes that must be there, those that are only looked at with them
        std::uint32_t bytes = 0;
        std::uint32_t past_nul = 1;  // from the string's NUL to what the next stretch begins with
        std::uint32_t guess = 0;     // the last string's length; with past_nul, and what zeros() says of its bytes:
        std::uint32_t past_guess = 0, nul_mask = 0, nul_bit = 1;
        std::int32_t string_slot = -1;
        const Pair *integers = nullptr, *past_integers = nullptr;
        const Other *others = nullptr, *past_others = nullptr;
        std::uint16_t align = 1;  // in bytes
        bool alone = true, string = false, has_others = false;  // alone: there is no other, nor is it aligned

        [[gnu::always_inline]] const std::uint8_t *run(const std::uint8_t *p, const std::uint8_t *end, Slot *slots) {
            if (end - p < room) return nullptr;
            for (const Pair *l = integers, *past = past_integers; l != past; ++l) read(*l, p, slots);
            if (__builtin_expect(has_others, 0)) read_others(p, slots);
            if (string && string_slot >= 0) return past_string(p + bytes, end, &slots[string_slot]);
            return past(p, end);
        }
        // Where it ends.
        [[gnu::always_inline]] const std::uint8_t *past(const std::uint8_t *p, const std::uint8_t *end) {
            p += bytes;
            return string ? past_string(p, end, nullptr) : p;
        }
        // Where the next event begins does not wait for the search, as long as the string is as long as the last: only the guess leads there.
        [[gnu::always_inline]] const std::uint8_t *past_string(const std::uint8_t *p, const std::uint8_t *end, Slot *wanted) {
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
        auto eight = [p](std::uint32_t offset) { return _mm_loadl_epi64(reinterpret_cast<const __m128i *>(p + offset)); };
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
    // In place: a slot that is put together elsewhere and copied waits for its own bytes.
    static void text(const std::uint8_t *begin, std::size_t size, Slot &slot) {
        slot.s = reinterpret_cast<const char *>(begin);
        slot.size = static_cast<std::uint32_t>(size);
        slot.kind = Slot::Kind::kString;
    }
    // A bit for each of kProbe bytes: it is 0.
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
    const std::uint8_t *run_all(const std::uint8_t *packet, const std::uint8_t *p, const std::uint8_t *end, Slot *slots);

    void find_windows();

    Windows windows_;
    Stretch first_;
    std::vector<Stretch> stretches_;
    std::vector<Pair> integers_;
    std::vector<Other> others_;
};

// Finds events that have the slots of one that was run: of the program's class, or of another for which layout(), not the empty one, is equal.
class Straight::Repeats {
  public:
    Repeats(Straight &of, const std::uint8_t *like) : of_(of.first_) {
        for (int i = 0; i < 2; ++i) {
            at_[i] = of.windows_.at[i];
            ones_[i] = Sixteen::at(of.windows_.ones[i]);
            like_[i] = Sixteen::at(like + at_[i]);
        }
    }
    // Where the event at `p` ends; nullptr: its slots may be others. There are kRepeatRoom bytes from `like` and from `p` on, and before `end`.
    [[gnu::always_inline]] const std::uint8_t *past(const std::uint8_t *p, const std::uint8_t *end) {
        auto differ = [&](int i) { return (Sixteen::at(p + at_[i]) ^ like_[i]) & ones_[i]; };
        return (differ(0) | differ(1)).none() ? of_.past(p, end) : nullptr;
    }

  private:
    Stretch &of_;
    std::uint32_t at_[2];
    Sixteen ones_[2], like_[2];
};

}  // namespace opline::ctf
