// SPDX-License-Identifier: MIT
#include "parquet_encode.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

namespace opline::parquet {
namespace {

constexpr std::size_t kBlock = 128, kMini = 32, kMinis = kBlock / kMini;
constexpr std::size_t kLongRun = 64;  // of equal values: shorter ones are packed with the rest

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

std::uint64_t zigzag(std::int64_t v) { return (static_cast<std::uint64_t>(v) << 1) ^ static_cast<std::uint64_t>(v >> 63); }

template <class U>
void delta(Bytes &out, const U *values, std::size_t n) {
    using S = std::make_signed_t<U>;
    const std::size_t used = out.size();
    out.resize(used + 40 + (n / kBlock + 1) * (10 + kMinis + kBlock * sizeof(U)));
    char *at = put_varint(put_varint(put_varint(out.data() + used, kBlock), kMinis), n);
    at = put_varint(at, zigzag(n == 0 ? 0 : static_cast<S>(values[0])));
    std::array<U, kBlock> deltas;
    for (std::size_t begin = 1; begin < n; begin += kBlock) {
        const std::size_t m = std::min(kBlock, n - begin);
        const U *v = values + begin;
        S least = std::numeric_limits<S>::max();
        for (std::size_t i = 0; i < m; ++i) {
            deltas[i] = v[i] - v[static_cast<std::ptrdiff_t>(i) - 1];
            least = std::min(least, static_cast<S>(deltas[i]));
        }
        for (std::size_t i = 0; i < m; ++i) deltas[i] -= static_cast<U>(least);
        for (std::size_t i = m; i < kBlock; ++i) deltas[i] = 0;
        at = put_varint(at, zigzag(least));
        char *widths = at;
        at += kMinis;
        for (std::size_t mini = 0; mini < kMinis; ++mini) {
            const U *d = deltas.data() + mini * kMini;
            U bits = 0;
            for (std::size_t i = 0; i < kMini; ++i) bits |= d[i];
            const unsigned width = width_of(bits);
            widths[mini] = static_cast<char>(width);
            pack_by_width(d, width, at);
            at += 4 * width;
        }
    }
    out.resize(static_cast<std::size_t>(at - out.data()));
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

void add_delta(Bytes &out, const std::uint32_t *values, std::size_t n) { delta(out, values, n); }
void add_delta(Bytes &out, const std::uint64_t *values, std::size_t n) { delta(out, values, n); }

void add_hybrid(Bytes &out, const std::uint32_t *values, std::size_t n, unsigned width) {
    for (std::size_t at = 0; at < n;) {
        const std::size_t run = run_at(values, at, n, n);
        if (run >= kLongRun || at + run == n) {
            add_varint(out, run << 1);
            const std::uint32_t v = values[at];
            const char *bytes = reinterpret_cast<const char *>(&v);
            out.insert(out.end(), bytes, bytes + (width + 7) / 8);
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

void add_delta_texts(Bytes &out, std::string_view text, const std::vector<std::uint32_t> &ends) {
    std::vector<std::uint32_t> shared, rest;
    Bytes suffixes;
    std::string_view before;
    std::uint32_t begin = 0;
    for (const auto end : ends) {
        const auto one = text.substr(begin, end - begin);
        const std::size_t most = std::min(one.size(), before.size());
        const auto n = static_cast<std::size_t>(std::mismatch(one.begin(), one.begin() + static_cast<std::ptrdiff_t>(most), before.begin()).first - one.begin());
        shared.push_back(static_cast<std::uint32_t>(n));
        rest.push_back(static_cast<std::uint32_t>(one.size() - n));
        suffixes.insert(suffixes.end(), one.begin() + static_cast<std::ptrdiff_t>(n), one.end());
        before = one;
        begin = end;
    }
    add_delta(out, shared.data(), shared.size());
    add_delta(out, rest.data(), rest.size());
    out.insert(out.end(), suffixes.begin(), suffixes.end());
}

}  // namespace opline::parquet
