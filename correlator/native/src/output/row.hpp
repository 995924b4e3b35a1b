// SPDX-License-Identifier: MIT
// How rows of tables are filled. Private to the tables' writer.
#pragma once
#include <algorithm>
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

// What a column of the type holds of a row (Column::put()).
template <ColumnType>
struct Stored;
template <>
struct Stored<ColumnType::kInt64> {
    using Value = std::int64_t;
};
template <>
struct Stored<ColumnType::kInt32> {
    using Value = std::int32_t;
};
template <>
struct Stored<ColumnType::kUint32> {
    using Value = std::uint32_t;
};
template <>
struct Stored<ColumnType::kDict> {
    using Value = std::uint32_t;
};
template <>
struct Stored<ColumnType::kBool> {
    using Value = std::uint8_t;
};

// Fills some rows at once, column by column: value(i) is of the row i.
class RowsAtOnce {
  public:
    RowsAtOnce(Table &table, std::size_t n)
        : complete_(table), columns_(table.columns.data()), first_(table.add_rows(n)), n_(n) {}
    template <ColumnType Type, class Value>
    RowsAtOnce &put(ColumnName<Type> c, Value value) {
        using T = typename Stored<Type>::Value;
        complete_.put(c.place);
        T *to = columns_[c.place].template from<T>(first_);
        for (std::size_t i = 0; i < n_; ++i) to[i] = static_cast<T>(value(i));
        return *this;
    }
    template <ColumnType Type, class Known, class Value>
    RowsAtOnce &put_if(ColumnName<Type> c, Known known, Value value) {
        // In most columns all rows of an op have a value, or none.
        std::size_t there = 0;
        for (std::size_t i = 0; i < n_; ++i) there += static_cast<std::size_t>(known(i));
        if (there == n_) return put(c, value);
        if (there == 0) return absent(c);
        using T = typename Stored<Type>::Value;
        complete_.put(c.place);
        Column &column = columns_[c.place];
        T *to = column.from<T>(first_);
        for (std::size_t i = 0; i < n_; ++i)
            if (known(i)) to[i] = static_cast<T>(value(i));
            else column.put_absent(first_ + i);
        return *this;
    }
    // 0: absent.
    template <class Value>
    RowsAtOnce &dict_or_absent(columns::Dict c, Value value) {
        put(c, value);
        Column &column = columns_[c.place];
        const std::uint32_t *ids = column.from<std::uint32_t>(first_);
        const auto none = static_cast<std::size_t>(std::count(ids, ids + n_, 0));
        if (none == n_) column.put_all_absent(first_, n_);
        else if (none != 0)
            for (std::size_t i = 0; i < n_; ++i)
                if (ids[i] == 0) column.put_absent(first_ + i);
        return *this;
    }
    // Columns that no row has.
    template <class... Columns>
    RowsAtOnce &absent(Columns... c) {
        (complete_.put(c.place), ...);
        (columns_[c.place].put_all_absent(first_, n_), ...);
        return *this;
    }

  private:
    Completeness complete_;
    Column *columns_;
    std::size_t first_, n_;
};

}  // namespace opline
