// SPDX-License-Identifier: MIT
// The tables by number, and how their rows are filled. Private to the emitter.
#pragma once
#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/table.hpp"
#include "event/event.hpp"

namespace opline {

enum TableIndex {
    kOps,
    kTransitions,
    kStages,
    kRequests,
    kBios,
    kLinks,
    kDeferred,
    kBatches,
    kFates,
    kDiscarded,
    kLosses
};

// Fills one row, column after column.
class Row {
  public:
    explicit Row(Table &table) : table_(table), row_(table.add_row()), column_(table.columns.data()) {}
    ~Row() { assert(column_ == table_.columns.data() + table_.columns.size()); }
    Row(const Row &) = delete;
    Row &i64(std::int64_t v) { return put(v); }
    Row &u64(std::uint64_t v) { return put(v); }
    Row &i32(std::int32_t v) { return put(v); }
    Row &u32(std::uint32_t v) { return put(v); }
    Row &flag(bool v) { return put(static_cast<std::uint8_t>(v)); }
    Row &text(std::string_view v) {
        (column_++)->put_text(row_, v);
        return *this;
    }
    Row &dict(std::uint32_t id) { return u32(id); }
    Row &absent() {
        (column_++)->put_absent(row_);
        return *this;
    }
    Row &time(std::int64_t v) { return v == kNoTime ? absent() : i64(v); }
    Row &dict_or_absent(std::uint32_t id) { return id == 0 ? absent() : u32(id); }
    Row &text_or_absent(std::string_view v) { return v.empty() ? absent() : text(v); }
    Row &i64_if(bool known, std::int64_t v) { return known ? i64(v) : absent(); }
    Row &i32_if(bool known, std::int32_t v) { return known ? i32(v) : absent(); }
    Row &u32_if(bool known, std::uint32_t v) { return known ? u32(v) : absent(); }
    Row &u64_if(bool known, std::uint64_t v) { return known ? u64(v) : absent(); }

  private:
    template <class T>
    Row &put(T v) {
        (column_++)->put(row_, v);
        return *this;
    }
    [[maybe_unused]] Table &table_;
    std::size_t row_;
    Column *column_;
};

// Fills some rows at once, column after column.
class RowBlock {
  public:
    RowBlock(Table &table, std::size_t rows)
        : table_(table), n_(rows), row_(table.add_rows(rows)), column_(table.columns.data()) {}
    ~RowBlock() { assert(column_ == table_.columns.data() + table_.columns.size()); }
    RowBlock(const RowBlock &) = delete;
    template <class T>
    RowBlock &all(T v) {
        std::fill_n((column_++)->put_many<T>(row_), n_, v);
        return *this;
    }
    template <class T>
    RowBlock &copy(const T *values) {
        std::memcpy((column_++)->put_many<T>(row_), values, n_ * sizeof(T));
        return *this;
    }
    // Values that stay where they are.
    template <class T>
    RowBlock &repeat(const T *values) {
        (column_++)->repeat(row_, values, n_);
        return *this;
    }
    // value(i) of rows that are present.
    template <class T, class Value>
    RowBlock &each(Value value) {
        T *to = (column_++)->put_many<T>(row_);
        for (std::size_t i = 0; i < n_; ++i) to[i] = value(i);
        return *this;
    }
    // value(i), absent where it is not known(value).
    template <class T, class Value, class Known>
    RowBlock &each(Value value, Known known) {
        Column &c = *column_++;
        for (std::size_t i = 0; i < n_; ++i) {
            const T v = value(i);
            if (known(v)) c.put(row_ + i, v);
            else c.put_absent(row_ + i);
        }
        return *this;
    }
    RowBlock &absent(int columns) {
        while (columns-- > 0) (column_++)->put_absent(row_, n_);
        return *this;
    }

  private:
    [[maybe_unused]] Table &table_;
    std::size_t n_, row_;
    Column *column_;
};

}  // namespace opline
