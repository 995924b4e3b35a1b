// SPDX-License-Identifier: MIT
// A column's values, encoded as its type wants it.
#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "base/utf8.hpp"
#include "output/parquet/file.hpp"
#include "output/parquet/format.hpp"

namespace opline::parquet {
namespace {

constexpr std::uint32_t kUnused = 0xffffffff;

template <class T>
std::pair<std::int64_t, std::int64_t> range(const T *values, std::size_t n) {
    if constexpr (std::is_same_v<T, std::int64_t>) {
        // Values within 2^31 of the first value are compared in 32 bits.
        const std::int64_t first = values[0];
        const auto from_first = [&](std::size_t i) {
            return static_cast<std::uint64_t>(values[i]) - static_cast<std::uint64_t>(first);
        };
        std::uint64_t beyond = first > INT64_MAX / 2 || first < INT64_MIN / 2;
        std::int32_t near_least = 0, near_largest = 0;
        for (std::size_t i = 0; i < n; ++i) {
            beyond |= (from_first(i) + 0x80000000u) >> 32;
            const auto d = static_cast<std::int32_t>(from_first(i));
            near_least = std::min(near_least, d);
            near_largest = std::max(near_largest, d);
        }
        if (beyond == 0) return {first + near_least, first + near_largest};
    }
    T least = values[0], largest = values[0];
    for (std::size_t i = 1; i < n; ++i) {
        least = std::min(least, values[i]);
        largest = std::max(largest, values[i]);
    }
    return {static_cast<std::int64_t>(least), static_cast<std::int64_t>(largest)};
}

// The values of the present rows, one after the other.
template <std::size_t Width>
std::size_t gather(std::uint8_t *to, const std::uint8_t *values, const std::uint8_t *absent, std::size_t rows) {
    std::size_t n = 0;
    for (std::size_t i = 0; i < rows; ++i) {
        std::memcpy(to + n * Width, values + i * Width, Width);
        n += absent[i] == 0;
    }
    return n;
}

void add_bools(Bytes &page, const std::uint8_t *values, std::size_t n) {
    const std::size_t used = page.size();
    page.resize(used + (n + 7) / 8);
    for (std::size_t i = 0; i + 8 <= n; i += 8) {  // eight bytes of 0 or 1 into eight bits
        std::uint64_t bytes;
        std::memcpy(&bytes, values + i, 8);
        page[used + i / 8] = static_cast<char>(bytes * 0x0102040810204080 >> 56);
    }
    for (std::size_t i = n & ~std::size_t{7}; i < n; ++i)
        page[used + i / 8] = static_cast<char>(page[used + i / 8] | (values[i] << (i % 8)));
}

void add_texts(Bytes &page, const Column &c, std::size_t rows) {
    std::string_view text(c.text.data(), c.text.size());
    std::string mended;
    std::vector<std::uint32_t> ends;
    const bool ascii = is_ascii(text);
    for (std::size_t i = 0; i < rows; ++i) {
        if (!c.present(i)) continue;
        if (!ascii) mended += valid_utf8(c.get_text(i));
        ends.push_back(ascii ? c.get<std::uint32_t>(i) : static_cast<std::uint32_t>(mended.size()));
    }
    add_delta_texts(page, ascii ? text : mended, ends);
}

}  // namespace

void File::add_ids(const std::uint32_t *ids, std::size_t n, const KnownStrings &of, Bytes &page, Chunk &chunk) {
    // Only the texts used in this row group, sorted: the order in the pool depends on the reader. Texts ill-formed in
    // different ways may become equal when mended: a dictionary has each text once.
    std::vector<std::pair<std::string, std::uint32_t>> used;
    const std::size_t period = period_of(ids, n);
    const std::size_t different = period != 0 ? period : n;
    place_.assign(of.known, kUnused);
    for (std::size_t i = 0; i < different; ++i) place_[ids[i]] = 0;
    for (std::uint32_t id = 0; id < place_.size(); ++id)
        if (place_[id] != kUnused) {
            const std::string &text = of.pool.at(id);
            used.emplace_back(is_ascii(text) ? text : valid_utf8(text), id);
        }
    std::sort(used.begin(), used.end());
    std::vector<std::string> texts;
    for (auto &[text, id] : used) {
        if (texts.empty() || texts.back() != text) texts.push_back(std::move(text));
        place_[id] = static_cast<std::uint32_t>(texts.size() - 1);
    }
    indices_.resize(period != 0 ? std::min(n, many_of(period)) : n);
    for (std::size_t i = 0; i < indices_.size(); ++i) indices_[i] = place_[ids[i]];
    unsigned width = 1;
    while (texts.size() > std::size_t{1} << width) ++width;
    page.push_back(static_cast<char>(width));
    add_hybrid(page, indices_.data(), n, width, period);
    add_dictionary(texts, chunk);
}

int File::add_values(const Column &c, std::size_t rows, const KnownStrings &texts, Bytes &page, Chunk &chunk) {
    const std::uint8_t *values = c.values();
    std::size_t n = rows;
    if (c.nulls != 0 && c.type != ColumnType::kText) {  // an absent text has no bytes, and is left out below
        present_.resize(rows);
        auto *to = reinterpret_cast<std::uint8_t *>(present_.data());
        n = (c.width() == 8 ? gather<8> : c.width() == 4 ? gather<4> : gather<1>)(to, values, c.absent(), rows);
        values = to;
    }
    const auto as = [values](auto type) { return reinterpret_cast<const decltype(type) *>(values); };
    const auto keep_range = [&chunk](std::pair<std::int64_t, std::int64_t> r) {
        chunk.has_range = true;
        chunk.least = r.first;
        chunk.largest = r.second;
    };
    switch (c.type) {
    case ColumnType::kInt64:
        keep_range(range(as(std::int64_t{}), n));
        add_delta(page, as(std::uint64_t{}), n);
        return kDelta;
    case ColumnType::kUint64:
        keep_range(range(as(std::uint64_t{}), n));
        add_delta(page, as(std::uint64_t{}), n);
        return kDelta;
    case ColumnType::kInt32:
        keep_range(range(as(std::int32_t{}), n));
        add_delta(page, as(std::uint32_t{}), n);
        return kDelta;
    case ColumnType::kUint32:
        keep_range(range(as(std::uint32_t{}), n));
        add_delta(page, as(std::uint32_t{}), n);
        return kDelta;
    case ColumnType::kBool: add_bools(page, values, n); return kPlain;
    case ColumnType::kDict: add_ids(as(std::uint32_t{}), n, texts, page, chunk); return kRleDictionary;
    case ColumnType::kText: add_texts(page, c, rows); return kDeltaTexts;
    }
    return kPlain;
}

}  // namespace opline::parquet
