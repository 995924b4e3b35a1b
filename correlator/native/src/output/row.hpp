// SPDX-License-Identifier: MIT
// How rows of tables are filled. Private to the tables' writer.
#pragma once
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/table.hpp"
#include "event/event.hpp"
#include "output/columns.hpp"

namespace opline {

// Which columns of a row were put: all of them have to be, each once.
class Completeness {
  public:
    explicit Completeness(const Table &table) : table_(table) {}
    ~Completeness() { assert(put_ == (std::uint64_t{1} << table_.columns.size()) - 1); }
    Completeness(const Completeness &) = delete;
    void put(std::size_t place) {
        assert((put_ >> place & 1) == 0);
        put_ |= std::uint64_t{1} << place;
    }

  private:
    [[maybe_unused]] const Table &table_;
    std::uint64_t put_ = 0;
};

// Fills one row. Columns are named (output/columns.hpp); a value of another type than the column's does not compile.
class Row {
  public:
    explicit Row(Table &table) : complete_(table), columns_(table.columns.data()), row_(table.add_row()) {}
    Row &i64(columns::I64 c, std::int64_t v) { return put(c.place, v); }
    Row &u64(columns::U64 c, std::uint64_t v) { return put(c.place, v); }
    Row &i32(columns::I32 c, std::int32_t v) { return put(c.place, v); }
    Row &u32(columns::U32 c, std::uint32_t v) { return put(c.place, v); }
    Row &flag(columns::Bool c, bool v) { return put(c.place, static_cast<std::uint8_t>(v)); }
    Row &flag_if(columns::Bool c, bool known, bool v) { return known ? flag(c, v) : absent(c.place); }
    Row &dict(columns::Dict c, std::uint32_t id) { return put(c.place, id); }
    Row &text(columns::Text c, std::string_view v) {
        complete_.put(c.place);
        columns_[c.place].put_text(row_, v);
        return *this;
    }
    Row &time(columns::I64 c, std::int64_t v) { return i64_if(c, v != kNoTime, v); }
    Row &dict_or_absent(columns::Dict c, std::uint32_t id) { return id == 0 ? absent(c.place) : dict(c, id); }
    Row &text_or_absent(columns::Text c, std::string_view v) { return v.empty() ? absent(c.place) : text(c, v); }
    Row &i64_if(columns::I64 c, bool known, std::int64_t v) { return known ? i64(c, v) : absent(c.place); }
    Row &i32_if(columns::I32 c, bool known, std::int32_t v) { return known ? i32(c, v) : absent(c.place); }
    Row &u32_if(columns::U32 c, bool known, std::uint32_t v) { return known ? u32(c, v) : absent(c.place); }
    Row &u64_if(columns::U64 c, bool known, std::uint64_t v) { return known ? u64(c, v) : absent(c.place); }

  private:
    template <class T>
    Row &put(std::size_t place, T v) {
        complete_.put(place);
        columns_[place].put(row_, v);
        return *this;
    }
    Row &absent(std::size_t place) {
        complete_.put(place);
        columns_[place].put_absent(row_);
        return *this;
    }
    Completeness complete_;
    Column *columns_;
    std::size_t row_;
};

// Fills some rows at once, column by column: value(i) is of the row i.
class RowsAtOnce {
  public:
    RowsAtOnce(Table &table, std::size_t n)
        : complete_(table), columns_(table.columns.data()), first_(table.add_rows(n)), n_(n) {}
    template <class Value>
    RowsAtOnce &i64(columns::I64 c, Value value) {
        return put<std::int64_t>(c.place, value);
    }
    template <class Value>
    RowsAtOnce &u32(columns::U32 c, Value value) {
        return put<std::uint32_t>(c.place, value);
    }
    template <class Value>
    RowsAtOnce &flag(columns::Bool c, Value value) {
        return put<std::uint8_t>(c.place, value);
    }
    template <class Value>
    RowsAtOnce &dict(columns::Dict c, Value value) {
        return put<std::uint32_t>(c.place, value);
    }
    template <class Value>
    RowsAtOnce &dict_or_absent(columns::Dict c, Value value) {
        return put_if<std::uint32_t>(
            c.place, [&](std::size_t i) { return value(i) != 0; }, value);
    }
    template <class Known, class Value>
    RowsAtOnce &i64_if(columns::I64 c, Known known, Value value) {
        return put_if<std::int64_t>(c.place, known, value);
    }
    template <class Known, class Value>
    RowsAtOnce &i32_if(columns::I32 c, Known known, Value value) {
        return put_if<std::int32_t>(c.place, known, value);
    }
    template <class Known, class Value>
    RowsAtOnce &u32_if(columns::U32 c, Known known, Value value) {
        return put_if<std::uint32_t>(c.place, known, value);
    }
    // Columns that no row has.
    template <class... Columns>
    RowsAtOnce &absent(Columns... c) {
        (absent_at(c.place), ...);
        return *this;
    }

  private:
    template <class T, class Value>
    RowsAtOnce &put(std::size_t place, Value value) {
        complete_.put(place);
        T *to = columns_[place].from<T>(first_);
        for (std::size_t i = 0; i < n_; ++i) to[i] = static_cast<T>(value(i));
        return *this;
    }
    template <class T, class Known, class Value>
    RowsAtOnce &put_if(std::size_t place, Known known, Value value) {
        // In most columns all rows of an op have a value, or none.
        std::size_t there = 0;
        for (std::size_t i = 0; i < n_; ++i) there += static_cast<std::size_t>(known(i));
        if (there == n_) return put<T>(place, value);
        if (there == 0) return absent_at(place), *this;
        complete_.put(place);
        Column &column = columns_[place];
        T *to = column.from<T>(first_);
        for (std::size_t i = 0; i < n_; ++i)
            if (known(i)) to[i] = static_cast<T>(value(i));
            else column.put_absent(first_ + i);
        return *this;
    }
    void absent_at(std::size_t place) {
        complete_.put(place);
        columns_[place].put_all_absent(first_, n_);
    }
    Completeness complete_;
    Column *columns_;
    std::size_t first_, n_;
};

}  // namespace opline
