// SPDX-License-Identifier: MIT
#include "output/parquet/file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <type_traits>
#include <utility>

#include "base/utf8.hpp"
#include "output/parquet/thrift.hpp"

namespace opline::parquet {
namespace {

// Of parquet.thrift
enum Type { kBoolean = 0, kPhysicalInt32 = 1, kPhysicalInt64 = 2, kByteArray = 6 };
enum Encoding { kPlain = 0, kRle = 3, kDelta = 5, kDeltaTexts = 7, kRleDictionary = 8 };
enum ConvertedType { kUtf8 = 0, kUint32Converted = 13, kUint64Converted = 14 };
constexpr int kOptional = 1, kDataPage = 0, kDictionaryPage = 2, kUncompressed = 0, kLz4Raw = 7;
constexpr std::uint32_t kUnused = 0xffffffff;

int physical(ColumnType t) {
    switch (t) {
    case ColumnType::kInt64:
    case ColumnType::kUint64: return kPhysicalInt64;
    case ColumnType::kInt32:
    case ColumnType::kUint32: return kPhysicalInt32;
    case ColumnType::kBool: return kBoolean;
    case ColumnType::kDict:
    case ColumnType::kText: break;
    }
    return kByteArray;
}

bool is_number(ColumnType t) { return physical(t) == kPhysicalInt32 || physical(t) == kPhysicalInt64; }

template <class T>
void add_plain(Bytes &out, T v) {
    const char *bytes = reinterpret_cast<const char *>(&v);
    out.insert(out.end(), bytes, bytes + sizeof v);
}

void add_level_run(Bytes &out, std::size_t rows, bool present) {
    Bytes run;
    add_varint(run, rows << 1);
    run.push_back(present ? 1 : 0);
    add_plain(out, static_cast<std::uint32_t>(run.size()));
    out.insert(out.end(), run.begin(), run.end());
}

// Which rows are present: with a bit each where some are and some are not.
void add_levels(Bytes &out, const Column &c, std::size_t rows) {
    if (c.nulls == 0 || c.nulls == rows) return add_level_run(out, rows, c.nulls == 0);
    std::vector<std::uint32_t> levels(rows);
    for (std::size_t i = 0; i < rows; ++i) levels[i] = c.absent()[i] ^ 1;
    Bytes runs;
    add_hybrid(runs, levels.data(), rows, 1);
    add_plain(out, static_cast<std::uint32_t>(runs.size()));
    out.insert(out.end(), runs.begin(), runs.end());
}

template <class T>
std::pair<std::int64_t, std::int64_t> range(const T *values, std::size_t n) {
    if constexpr (std::is_same_v<T, std::int64_t>) {
        // Values that are less than 2^31 from the first are compared in 32 bits.
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

// Values of the rows that are present, one after the other.
template <std::size_t Width>
std::size_t gather(std::uint8_t *to, const std::uint8_t *values, const std::uint8_t *absent, std::size_t rows) {
    std::size_t n = 0;
    for (std::size_t i = 0; i < rows; ++i) {
        std::memcpy(to + n * Width, values + i * Width, Width);
        n += absent[i] == 0;
    }
    return n;
}

bool is_ascii(std::string_view text) {
    char all = 0;
    for (const char c : text) all = static_cast<char>(all | c);
    return static_cast<signed char>(all) >= 0;
}

}  // namespace

File::File(int fd, std::vector<ColumnSpec> columns, std::string arrow_schema)
    : columns_(std::move(columns)), arrow_schema_(std::move(arrow_schema)), fd_(fd) {
    const Bytes magic{'P', 'A', 'R', '1'};
    crc_ = crc_of(magic);
    write(magic);
}

File::~File() {
    if (fd_ >= 0) ::close(fd_);
}

void File::write(const Bytes &bytes) {
    for (std::size_t at = 0; at < bytes.size() && error_ == 0;) {
        const auto n = ::write(fd_, bytes.data() + at, bytes.size() - at);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) error_ = n == 0 ? ENOSPC : errno;
        else at += static_cast<std::size_t>(n);
    }
    written_ += bytes.size();
}

void File::add(Table &table, const StringPool &strings) {
    const std::size_t rows = table.rows();
    out_.clear();
    std::vector<Chunk> chunks;
    for (auto &c : table.columns) chunks.push_back(add_column(c, rows, strings));
    Thrift t(descriptions_);
    t.open();
    t.list_of_structs(1, chunks.size());
    for (std::size_t i = 0; i < chunks.size(); ++i) describe(table.columns[i], chunks[i], rows);
    std::uint64_t plain = 0;
    for (const auto &chunk : chunks) plain += chunk.plain_bytes;
    t.i64(2, static_cast<std::int64_t>(plain));
    t.i64(3, static_cast<std::int64_t>(rows));
    t.i64(5, static_cast<std::int64_t>(written_));
    t.i64(6, static_cast<std::int64_t>(out_.size()));
    t.close();
    ++groups_;
    rows_ += rows;
    write(out_);
}

File::Chunk File::add_column(Column &c, std::size_t rows, const StringPool &strings) {
    Chunk chunk;
    chunk.begin = written_ + out_.size();
    const std::size_t before = out_.size();
    page_.clear();
    add_levels(page_, c, rows);
    chunk.encoding = c.nulls == rows ? static_cast<int>(kPlain) : add_values(c, rows, strings, page_, chunk);
    add_page(page_, rows, chunk);
    chunk.bytes = out_.size() - before;
    return chunk;
}

int File::add_values(Column &c, std::size_t rows, const StringPool &strings, Bytes &page, Chunk &chunk) {
    // A column that repeats some values is encoded without being there as a whole.
    std::size_t period = 0;
    if (c.type == ColumnType::kDict || c.type == ColumnType::kUint32) {
        if (const auto *one = c.repeated<std::uint32_t>(rows, period); one && rows >= many_of(period)) {
            repeats_.resize(many_of(period));
            for (std::size_t i = 0; i < repeats_.size(); ++i) repeats_[i] = i < period ? one[i] : repeats_[i - period];
        } else {
            period = 0;
        }
    }
    if (period == 0) c.store();
    const std::uint8_t *values = period != 0 ? reinterpret_cast<const std::uint8_t *>(repeats_.data()) : c.values();
    std::size_t n = rows;
    if (c.nulls != 0 && c.type != ColumnType::kText) {  // an absent text is no bytes, which is left out below
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
        keep_range(range(as(std::uint32_t{}), period != 0 ? period : n));
        chunk.repeat = add_delta(page, as(std::uint32_t{}), n, period);
        chunk.lz4 = chunk.repeat.cycle != 0;
        return kDelta;
    case ColumnType::kBool: {
        const std::size_t used = page.size();
        page.resize(used + (n + 7) / 8);
        for (std::size_t i = 0; i + 8 <= n; i += 8) {  // eight bytes that are 0 or 1 into eight bits
            std::uint64_t bytes;
            std::memcpy(&bytes, values + i, 8);
            page[used + i / 8] = static_cast<char>(bytes * 0x0102040810204080 >> 56);
        }
        for (std::size_t i = n & ~std::size_t{7}; i < n; ++i)
            page[used + i / 8] = static_cast<char>(page[used + i / 8] | (values[i] << (i % 8)));
        return kPlain;
    }
    case ColumnType::kDict: {
        const auto *ids = as(std::uint32_t{});
        // Only the texts that this row group uses, in their own order: the pool's depends on who read the trace.
        std::vector<std::uint32_t> used;
        if (period == 0) period = period_of(ids, n);
        const std::size_t different = period != 0 ? period : n;
        place_.assign(strings.size(), kUnused);
        for (std::size_t i = 0; i < different; ++i) place_[ids[i]] = 0;
        for (std::uint32_t id = 0; id < place_.size(); ++id)
            if (place_[id] != kUnused) used.push_back(id);
        std::sort(used.begin(), used.end(),
                  [&](std::uint32_t a, std::uint32_t b) { return strings.at(a) < strings.at(b); });
        for (std::uint32_t i = 0; i < used.size(); ++i) place_[used[i]] = i;
        indices_.resize(period != 0 ? std::min(n, many_of(period)) : n);
        for (std::size_t i = 0; i < indices_.size(); ++i) indices_[i] = place_[ids[i]];
        unsigned width = 1;
        while (used.size() > std::size_t{1} << width) ++width;
        page.push_back(static_cast<char>(width));
        chunk.repeat = add_hybrid(page, indices_.data(), n, width, period);
        chunk.lz4 = chunk.repeat.cycle != 0;
        add_dictionary(used, strings, chunk);
        return kRleDictionary;
    }
    case ColumnType::kText: {
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
        return kDeltaTexts;
    }
    }
    return kPlain;
}

void File::add_dictionary(const std::vector<std::uint32_t> &ids, const StringPool &strings, Chunk &chunk) {
    Bytes body;
    for (const auto id : ids) {
        const std::string &text = strings.at(id);
        const std::string mended = is_ascii(text) ? text : valid_utf8(text);
        add_plain(body, static_cast<std::uint32_t>(mended.size()));
        body.insert(body.end(), mended.begin(), mended.end());
    }
    const std::size_t before = out_.size();
    add_body(body, {}, chunk, kDictionaryPage, [&](Thrift &t) {
        t.open(7);
        t.i32(1, static_cast<std::int64_t>(ids.size()));
        t.i32(2, kPlain);
        t.close();
    });
    chunk.dictionary_bytes = out_.size() - before;
}

template <class Header>
void File::add_body(const Bytes &body, const Repeat &repeat, Chunk &chunk, int kind, Header header) {
    Bytes packed;
    if (chunk.lz4) add_lz4(packed, body, repeat);
    const Bytes &stored = chunk.lz4 ? packed : body;
    const std::size_t before = out_.size();
    Thrift t(out_);
    t.open();
    t.i32(1, kind);
    t.i32(2, static_cast<std::int64_t>(body.size()));
    t.i32(3, static_cast<std::int64_t>(stored.size()));
    const std::uint32_t crc = crc_of(stored);
    t.i32(4, static_cast<std::int32_t>(crc));
    header(t);
    t.close();
    crc_ = crc_of_both(crc_of(out_, before, crc_), crc, stored.size());
    chunk.plain_bytes += out_.size() - before + body.size();
    out_.insert(out_.end(), stored.begin(), stored.end());
}

void File::add_page(const Bytes &body, std::size_t values, Chunk &chunk) {
    add_body(body, chunk.repeat, chunk, kDataPage, [&](Thrift &t) {
        t.open(5);
        t.i32(1, static_cast<std::int64_t>(values));
        t.i32(2, chunk.encoding);
        t.i32(3, kRle);
        t.i32(4, kRle);
        t.close();
    });
}

// The column chunk, as the footer has it.
void File::describe(const Column &c, const Chunk &chunk, std::size_t rows) {
    const auto bytes = static_cast<std::int64_t>(chunk.bytes);
    Thrift t(descriptions_);
    t.open();
    t.i64(2, 0);  // file_offset, deprecated
    t.open(3);
    t.i32(1, physical(c.type));
    t.list_of_i32(2, chunk.dictionary_bytes != 0 ? 3 : 2);
    if (chunk.dictionary_bytes != 0) t.element(std::int64_t{kPlain});
    t.element(std::int64_t{kRle});
    t.element(std::int64_t{chunk.encoding});
    t.list_of_binaries(3, 1);
    t.element(std::string_view(c.name));
    t.i32(4, chunk.lz4 ? kLz4Raw : kUncompressed);
    t.i64(5, static_cast<std::int64_t>(rows));
    t.i64(6, static_cast<std::int64_t>(chunk.plain_bytes));
    t.i64(7, bytes);
    t.i64(9, static_cast<std::int64_t>(chunk.begin + chunk.dictionary_bytes));
    if (chunk.dictionary_bytes != 0) t.i64(11, static_cast<std::int64_t>(chunk.begin));
    t.open(12);
    t.i64(3, static_cast<std::int64_t>(c.nulls));
    if (chunk.has_range) {
        const auto value = [&](const std::int64_t &v) {
            return std::string_view(reinterpret_cast<const char *>(&v), physical(c.type) == kPhysicalInt32 ? 4 : 8);
        };
        t.binary(5, value(chunk.largest));
        t.binary(6, value(chunk.least));
    }
    t.close();
    t.close();
    t.close();
}

void File::close() {
    Bytes footer;
    Thrift t(footer);
    t.open();
    t.i32(1, 2);
    t.list_of_structs(2, columns_.size() + 1);
    t.open();
    t.binary(4, "schema");
    t.i32(5, static_cast<std::int64_t>(columns_.size()));
    t.close();
    for (const auto &c : columns_) {
        const bool text = !is_number(c.type) && c.type != ColumnType::kBool;
        const bool is_unsigned = c.type == ColumnType::kUint32 || c.type == ColumnType::kUint64;
        t.open();
        t.i32(1, physical(c.type));
        t.i32(3, kOptional);
        t.binary(4, c.name);
        if (text) t.i32(6, kUtf8);
        if (is_unsigned) t.i32(6, c.type == ColumnType::kUint32 ? kUint32Converted : kUint64Converted);
        if (text || is_unsigned) {
            t.open(10);
            t.open(text ? 1 : 10);
            if (is_unsigned) {
                t.byte(1, c.type == ColumnType::kUint32 ? 32 : 64);
                t.flag(2, false);
            }
            t.close();
            t.close();
        }
        t.close();
    }
    t.i64(3, static_cast<std::int64_t>(rows_));
    t.list_of_structs(4, groups_);
    footer.insert(footer.end(), descriptions_.begin(), descriptions_.end());
    if (!arrow_schema_.empty()) {
        t.list_of_structs(5, 1);
        t.open();
        t.binary(1, "ARROW:schema");
        t.binary(2, arrow_schema_);
        t.close();
    }
    t.binary(6, "opline");
    t.list_of_structs(7, columns_.size());  // the order of all columns is their type's
    for (std::size_t i = 0; i < columns_.size(); ++i) {
        t.open();
        t.open(1);
        t.close();
        t.close();
    }
    t.close();
    const auto size = static_cast<std::uint32_t>(footer.size());
    add_plain(footer, size);
    for (const char c : {'P', 'A', 'R', '1'}) footer.push_back(c);
    crc_ = crc_of(footer, 0, crc_);
    write(footer);
    if (fd_ >= 0 && ::close(fd_) != 0 && error_ == 0) error_ = errno;
    fd_ = -1;
}

}  // namespace opline::parquet
