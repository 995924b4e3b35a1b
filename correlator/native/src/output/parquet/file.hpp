// SPDX-License-Identifier: MIT
// Writes tables as Parquet files, a row group per chunk (apache/parquet-format 2.11). Numbers are DELTA_BINARY_PACKED,
// dictionary columns RLE_DICTIONARY with the texts of the row group in order, texts DELTA_BYTE_ARRAY, booleans PLAIN.
// All pages are ZSTD. Numbers have their least and largest per row group, all columns their number of absent values.
// Each page's header has the CRC-32 of the bytes behind it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/strings.hpp"
#include "base/table.hpp"
#include "output/parquet/encode.hpp"

namespace opline::parquet {

class File {
  public:
    struct ColumnSpec {
        std::string name;
        ColumnType type;
    };
    // Writes into a new file and takes over fd. arrow_schema: Arrow's own description of the columns for Arrow's
    // readers; or empty. error() tells whether this and all later writing succeeded.
    File(int fd, std::vector<ColumnSpec> columns, std::string arrow_schema);
    ~File();
    File(const File &) = delete;
    File &operator=(const File &) = delete;

    const std::vector<ColumnSpec> &columns() const { return columns_; }
    // Adds a row group from a table with these columns and at least one row. Only the pool's strings below `known` are
    // used.
    void add(const Table &, const StringPool &, std::size_t known);
    // Completes the file. Nothing may be added afterwards.
    void close();
    // Bytes written so far, and their CRC-32.
    std::uint64_t bytes() const { return written_; }
    std::uint32_t crc32() const { return crc_; }
    std::uint64_t rows() const { return rows_; }
    // errno of the first failure, after which nothing is written; 0: none.
    int error() const { return error_; }
    void fail(int error) { error_ = error; }

  private:
    struct Chunk {
        std::uint64_t begin = 0, dictionary_bytes = 0;  // place in the file; 0: no dictionary
        std::uint64_t bytes = 0, plain_bytes = 0;       // in the file; before the codec
        bool has_range = false;
        std::int64_t least = 0, largest = 0;
        int encoding = 0;
    };
    // The pool's strings below `known`.
    struct KnownStrings {
        const StringPool &pool;
        std::size_t known;
    };
    Chunk add_column(const Column &, std::size_t rows, const KnownStrings &);
    int add_values(const Column &, std::size_t rows, const KnownStrings &, Bytes &page, Chunk &);
    void add_ids(const std::uint32_t *ids, std::size_t n, const KnownStrings &, Bytes &page, Chunk &);
    void add_dictionary(const std::vector<std::string> &texts, Chunk &);
    void add_page(const Bytes &body, std::size_t values, Chunk &);
    // Adds the page's compressed body, after a header of the page's kind.
    template <class Header>
    void add_body(const Bytes &body, Chunk &, int kind, Header);
    void describe(const Column &, const Chunk &, std::size_t rows);
    void write(const Bytes &);

    std::vector<ColumnSpec> columns_;
    std::string arrow_schema_;
    int fd_ = -1, error_ = 0;
    std::uint64_t written_ = 0, rows_ = 0, groups_ = 0;
    std::uint32_t crc_ = 0;
    Bytes out_;                                   // of the current row group
    Bytes descriptions_;                          // of all row groups, for the footer
    std::vector<std::uint32_t> indices_, place_;  // of a dictionary column; where an id's text is in the dictionary
    std::vector<std::uint64_t> present_;          // values of a column without absent values
    Bytes page_, packed_;                         // the page's body; the same as stored
};

}  // namespace opline::parquet
