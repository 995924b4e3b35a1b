// SPDX-License-Identifier: MIT
#include "output/parquet/file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "output/parquet/format.hpp"
#include "output/parquet/thrift.hpp"

namespace opline::parquet {
namespace {

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

// The definition levels: a bit per row if some rows are present and some absent.
void add_levels(Bytes &out, const Column &c, std::size_t rows) {
    if (c.nulls == 0 || c.nulls == rows) return add_level_run(out, rows, c.nulls == 0);
    std::vector<std::uint32_t> levels(rows);
    for (std::size_t i = 0; i < rows; ++i) levels[i] = c.absent()[i] ^ 1;
    Bytes runs;
    add_hybrid(runs, levels.data(), rows, 1);
    add_plain(out, static_cast<std::uint32_t>(runs.size()));
    out.insert(out.end(), runs.begin(), runs.end());
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

void File::add(const Table &table, const StringPool &strings, std::size_t known) {
    const std::size_t rows = table.rows();
    const KnownStrings texts{strings, known};
    out_.clear();
    std::vector<Chunk> chunks;
    for (const auto &c : table.columns) chunks.push_back(add_column(c, rows, texts));
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

File::Chunk File::add_column(const Column &c, std::size_t rows, const KnownStrings &texts) {
    Chunk chunk;
    chunk.begin = written_ + out_.size();
    const std::size_t before = out_.size();
    page_.clear();
    add_levels(page_, c, rows);
    chunk.encoding = c.nulls == rows ? static_cast<int>(kPlain) : add_values(c, rows, texts, page_, chunk);
    add_page(page_, rows, chunk);
    chunk.bytes = out_.size() - before;
    return chunk;
}

template <class Header>
void File::add_body(const Bytes &body, Chunk &chunk, int kind, Header header) {
    packed_.clear();
    add_zstd(packed_, body);
    const std::size_t before = out_.size();
    Thrift t(out_);
    t.open();
    t.i32(1, kind);
    t.i32(2, static_cast<std::int64_t>(body.size()));
    t.i32(3, static_cast<std::int64_t>(packed_.size()));
    const std::uint32_t crc = crc_of(packed_);
    t.i32(4, static_cast<std::int32_t>(crc));
    header(t);
    t.close();
    crc_ = crc_of_both(crc_of(out_, before, crc_), crc, packed_.size());
    chunk.plain_bytes += out_.size() - before + body.size();
    out_.insert(out_.end(), packed_.begin(), packed_.end());
}

void File::add_dictionary(const std::vector<std::string> &texts, Chunk &chunk) {
    Bytes body;
    for (const std::string &text : texts) {
        add_plain(body, static_cast<std::uint32_t>(text.size()));
        body.insert(body.end(), text.begin(), text.end());
    }
    const std::size_t before = out_.size();
    add_body(body, chunk, kDictionaryPage, [&](Thrift &t) {
        t.open(7);
        t.i32(1, static_cast<std::int64_t>(texts.size()));
        t.i32(2, kPlain);
        t.close();
    });
    chunk.dictionary_bytes = out_.size() - before;
}

void File::add_page(const Bytes &body, std::size_t values, Chunk &chunk) {
    add_body(body, chunk, kDataPage, [&](Thrift &t) {
        t.open(5);
        t.i32(1, static_cast<std::int64_t>(values));
        t.i32(2, chunk.encoding);
        t.i32(3, kRle);
        t.i32(4, kRle);
        t.close();
    });
}

// Describes the column chunk for the footer.
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
    t.i32(4, kZstd);
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
    t.list_of_structs(7, columns_.size());  // every column is ordered by its type
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
