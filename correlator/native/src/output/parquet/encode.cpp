// SPDX-License-Identifier: MIT
#include "output/parquet/encode.hpp"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace opline::parquet {
namespace {

constexpr std::size_t kBlock = 128, kMini = 32, kMinis = kBlock / kMini;
constexpr std::size_t kLongRun = 64;  // of equal values: shorter runs are packed with the rest

// 32 values of Width bits each, the first in the lowest bits: 4 · Width bytes. May read and write nothing else.
template <class U, unsigned Width>
void pack(const U *in, char *out) {
    std::uint64_t word = 0;
    unsigned bits = 0;
#pragma GCC unroll 32
    for (std::size_t i = 0; i < kMini; ++i) {
        const std::uint64_t v = in[i];
        word |= v << bits;
        bits += Width;
        if (bits >= 64) {
            std::memcpy(out, &word, 8);
            out += 8;
            bits -= 64;
            word = bits != 0 ? v >> (Width - bits) : 0;
        }
    }
    if (bits != 0) std::memcpy(out, &word, 4);
}

template <class U>
using Pack = void (*)(const U *, char *);

template <class U, std::size_t... Width>
constexpr std::array<Pack<U>, sizeof...(Width)> packs(std::index_sequence<Width...>) {
    return {pack<U, static_cast<unsigned>(Width)>...};
}

template <class U>
void pack_by_width(const U *in, unsigned width, char *out) {
    static constexpr auto all = packs<U>(std::make_index_sequence<std::numeric_limits<U>::digits + 1>());
    if (width != 0) all[width](in, out);
}

template <class U>
unsigned width_of(U v) {
    return v == 0 ? 0 : 64 - static_cast<unsigned>(__builtin_clzll(v));
}

char *put_varint(char *at, std::uint64_t v) {
    for (; v >= 0x80; v >>= 7) *at++ = static_cast<char>(v | 0x80);
    *at++ = static_cast<char>(v);
    return at;
}

std::uint64_t zigzag(std::int64_t v) {
    return (static_cast<std::uint64_t>(v) << 1) ^ static_cast<std::uint64_t>(v >> 63);
}

// One block of DELTA_BINARY_PACKED: m differences from the value before. Most differences fit into 32 bits, with half
// the work.
template <class U>
char *put_block(char *at, const U *v, std::size_t m) {
    std::array<U, kBlock> wide;
    std::array<std::uint32_t, kBlock> narrow;
    U beyond = 0;  // bits outside of the width
    const auto keep = [&](std::size_t i, U d) {
        wide[i] = d;
        if constexpr (sizeof(U) == 8) beyond |= (d + 0x80000000u) >> 32;
    };
    if (m == kBlock)
        for (std::size_t i = 0; i < kBlock; ++i) keep(i, v[i] - v[static_cast<std::ptrdiff_t>(i) - 1]);
    else
        for (std::size_t i = 0; i < kBlock; ++i)
            keep(i, v[std::min(i, m - 1)] - v[static_cast<std::ptrdiff_t>(std::min(i, m - 1)) - 1]);
    const auto put = [&](auto &deltas) {
        using D = typename std::decay_t<decltype(deltas)>::value_type;
        using S = std::make_signed_t<D>;
        S least = std::numeric_limits<S>::max();
        for (const D d : deltas) least = std::min(least, static_cast<S>(d));
        for (D &d : deltas) d -= static_cast<D>(least);
        for (std::size_t i = m; i < kBlock; ++i) deltas[i] = 0;
        at = put_varint(at, zigzag(least));
        char *widths = at;
        at += kMinis;
        for (std::size_t mini = 0; mini < kMinis; ++mini) {
            const D *d = deltas.data() + mini * kMini;
            D bits = 0;
            for (std::size_t i = 0; i < kMini; ++i) bits |= d[i];
            const unsigned width = width_of(bits);
            widths[mini] = static_cast<char>(width);
            pack_by_width(d, width, at);
            at += 4 * width;
        }
    };
    if (beyond != 0) {
        put(wide);
    } else {
        for (std::size_t i = 0; i < kBlock; ++i) narrow[i] = static_cast<std::uint32_t>(wide[i]);
        put(narrow);
    }
    return at;
}

template <class U>
void delta(Bytes &out, const U *values, std::size_t n, std::size_t period) {
    using S = std::make_signed_t<U>;
    add_varint(out, kBlock);
    add_varint(out, kMinis);
    add_varint(out, n);
    add_zigzag(out, n == 0 ? 0 : static_cast<S>(values[0]));
    char bytes[10 + kMinis + kBlock * sizeof(U)];  // for at most one block
    const auto add_block = [&](std::size_t begin, std::size_t m) {
        out.insert(out.end(), bytes, put_block(bytes, values + 1 + begin, m));
    };
    const std::size_t blocks = n == 0 ? 0 : (n - 1) / kBlock;  // whole blocks
    std::size_t block = 0;
    std::vector<std::size_t> starts;  // of the first blocks; the other blocks repeat these
    for (; block < (period != 0 ? std::min(period, blocks) : blocks); ++block) {
        if (period != 0) starts.push_back(out.size());
        add_block(block * kBlock, kBlock);
    }
    starts.push_back(out.size());
    for (; block < blocks; ++block) {
        const std::size_t from = starts[block % period], length = starts[block % period + 1] - from;
        out.resize(out.size() + length);
        std::memcpy(out.data() + out.size() - length, out.data() + from, length);
    }
    if (n != 0 && 1 + blocks * kBlock < n)
        add_block((period != 0 ? blocks % period : blocks) * kBlock, n - 1 - blocks * kBlock);
}

template <class U>
bool all_same(const U *values, std::size_t n) {
    return n > 1 && std::memcmp(values, values + 1, (n - 1) * sizeof(U)) == 0;
}

void add_run(Bytes &out, std::size_t n, std::uint32_t value, unsigned width) {
    add_varint(out, n << 1);
    const char *bytes = reinterpret_cast<const char *>(&value);
    out.insert(out.end(), bytes, bytes + (width + 7) / 8);
}

// How many values from `at` on are the same.
std::size_t run_at(const std::uint32_t *values, std::size_t at, std::size_t n, std::size_t most) {
    std::size_t end = at + 1;
    n = std::min(n, at + most);
    while (end < n && values[end] == values[at]) ++end;
    return end - at;
}

}  // namespace

void add_varint(Bytes &out, std::uint64_t v) {
    char b[10];
    out.insert(out.end(), b, put_varint(b, v));
}

void add_zigzag(Bytes &out, std::int64_t v) { add_varint(out, zigzag(v)); }

void add_delta(Bytes &out, const std::uint32_t *values, std::size_t n) { delta(out, values, n, period_of(values, n)); }
void add_delta(Bytes &out, const std::uint64_t *values, std::size_t n) {
    delta(out, values, n, all_same(values, n) ? 1 : 0);
}

std::size_t period_of(const std::uint32_t *values, std::size_t n) {
    if (all_same(values, n)) return 1;
    constexpr std::size_t kMost = 128, kAlike = 32;
    for (std::size_t p = 2; p <= kMost && 2 * kMini * p <= n; ++p)
        if (values[p] == values[0] && std::memcmp(values, values + p, kAlike * sizeof *values) == 0)
            return std::memcmp(values, values + p, (n - p) * sizeof *values) == 0 ? p : 0;
    return 0;
}

void add_hybrid(Bytes &out, const std::uint32_t *values, std::size_t n, unsigned width, std::size_t period) {
    if (period > 1) {
        const std::size_t groups = (n + 7) / 8, cycle = 4 * period * width;  // bytes of 32 periods
        add_varint(out, groups << 1 | 1);
        const std::size_t begin = out.size();
        out.resize(begin + std::max(groups * width, cycle));
        for (std::size_t i = 0; i < period; ++i)
            pack_by_width(values + i * kMini, width, out.data() + begin + i * 4 * width);
        for (std::size_t done = cycle; done < groups * width; done *= 2)
            std::memcpy(out.data() + begin + done, out.data() + begin, std::min(done, groups * width - done));
        out.resize(begin + groups * width);
        return;
    }
    if (period == 1) {
        add_run(out, n, values[0], width);
        return;
    }
    for (std::size_t at = 0; at < n;) {
        const std::size_t run = run_at(values, at, n, n);
        if (run >= kLongRun || at + run == n) {
            add_run(out, run, values[at], width);
            at += run;
            continue;
        }
        std::size_t end = std::min(n, at + kMini);
        while (end < n && run_at(values, end, n, kLongRun) < kLongRun) end = std::min(n, end + kMini);
        const std::size_t groups = (end - at + 7) / 8, whole = (end - at) / kMini, used = out.size() + 10;
        add_varint(out, groups << 1 | 1);
        const std::size_t begin = out.size();
        out.resize(used + (whole + 1) * kMini / 8 * width);
        char *to = out.data() + begin;
        for (std::size_t i = 0; i < whole; ++i, to += 4 * width) pack_by_width(values + at + i * kMini, width, to);
        if (whole * kMini < end - at) {
            std::array<std::uint32_t, kMini> rest{};
            std::copy(values + at + whole * kMini, values + end, rest.begin());
            pack_by_width(rest.data(), width, to);
        }
        out.resize(begin + groups * width);
        at = end;
    }
}

std::uint32_t crc_of(const Bytes &bytes, std::size_t from, std::uint32_t before) {
    return static_cast<std::uint32_t>(
        ::crc32_z(before, reinterpret_cast<const unsigned char *>(bytes.data()) + from, bytes.size() - from));
}

std::uint32_t crc_of_both(std::uint32_t crc, std::uint32_t behind, std::size_t bytes) {
    return static_cast<std::uint32_t>(::crc32_combine(crc, behind, static_cast<z_off_t>(bytes)));
}

void add_zstd(Bytes &out, const Bytes &bytes) {
    const thread_local std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> context(ZSTD_createCCtx(), ZSTD_freeCCtx);
    if (context == nullptr) throw std::bad_alloc();
    const std::size_t before = out.size();
    out.resize(before + ZSTD_compressBound(bytes.size()));
    const std::size_t written =
        ZSTD_compressCCtx(context.get(), out.data() + before, out.size() - before, bytes.data(), bytes.size(), 1);
    // the output has room: only Zstandard's own memory can be missing
    if (ZSTD_isError(written)) throw std::bad_alloc();
    out.resize(before + written);
}

void add_delta_texts(Bytes &out, std::string_view text, const std::vector<std::uint32_t> &ends) {
    std::vector<std::uint32_t> shared, rest;
    shared.reserve(ends.size());
    rest.reserve(ends.size());
    Bytes suffixes(text.size());
    char *to = suffixes.data();
    std::size_t begin = 0, before = 0;  // of this text and of the text before, which ends at `begin`
    for (const std::size_t end : ends) {
        const std::size_t most = std::min(end - begin, begin - before);
        const char *one = text.data() + begin, *other = text.data() + before;
        std::size_t n = 0;
        for (std::uint64_t a, b; n + 8 <= most; n += 8) {
            std::memcpy(&a, one + n, 8);
            std::memcpy(&b, other + n, 8);
            if (a != b) break;
        }
        while (n < most && one[n] == other[n]) ++n;
        shared.push_back(static_cast<std::uint32_t>(n));
        rest.push_back(static_cast<std::uint32_t>(end - begin - n));
        to = std::copy(one + n, text.data() + end, to);
        before = begin;
        begin = end;
    }
    add_delta(out, shared.data(), shared.size());
    add_delta(out, rest.data(), rest.size());
    out.insert(out.end(), suffixes.data(), to);
}

}  // namespace opline::parquet
