// SPDX-License-Identifier: MIT
// How rows of tables are filled. Private to the emitter.
#pragma once
#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

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

// The type in which a column's values are stored.
template <ColumnType Type>
using StoredAs = std::conditional_t<
    Type == ColumnType::kInt64, std::int64_t,
    std::conditional_t<Type == ColumnType::kUint64, std::uint64_t,
                       std::conditional_t<Type == ColumnType::kInt32, std::int32_t,
                                          std::conditional_t<Type == ColumnType::kBool, std::uint8_t, std::uint32_t>>>>;

// Fills some rows at once.
class RowBlock {
  public:
    RowBlock(Table &table, std::size_t rows)
        : complete_(table), columns_(table.columns.data()), n_(rows), row_(table.add_rows(rows)) {}
    template <ColumnType Type>
    RowBlock &all(ColumnName<Type> c, StoredAs<Type> v) {
        std::fill_n(at(c).template put_many<StoredAs<Type>>(row_), n_, v);
        return *this;
    }
    template <ColumnType Type>
    RowBlock &copy(ColumnName<Type> c, const StoredAs<Type> *values) {
        std::memcpy(at(c).template put_many<StoredAs<Type>>(row_), values, n_ * sizeof *values);
        return *this;
    }
    // Values that stay where they are.
    template <ColumnType Type>
    RowBlock &repeat(ColumnName<Type> c, const StoredAs<Type> *values) {
        at(c).repeat(row_, values, n_);
        return *this;
    }
    // value(i) of rows that are present.
    template <ColumnType Type, class Value>
    RowBlock &each(ColumnName<Type> c, Value value) {
        auto *to = at(c).template put_many<StoredAs<Type>>(row_);
        for (std::size_t i = 0; i < n_; ++i) to[i] = value(i);
        return *this;
    }
    // value(i), absent where it is not known(value).
    template <ColumnType Type, class Value, class Known>
    RowBlock &each(ColumnName<Type> c, Value value, Known known) {
        Column &column = at(c);
        for (std::size_t i = 0; i < n_; ++i) {
            const StoredAs<Type> v = value(i);
            if (known(v)) column.put(row_ + i, v);
            else column.put_absent(row_ + i);
        }
        return *this;
    }
    template <ColumnType... Types>
    RowBlock &absent(ColumnName<Types>... all) {
        (at(all).put_absent(row_, n_), ...);
        return *this;
    }

  private:
    template <ColumnType Type>
    Column &at(ColumnName<Type> c) {
        complete_.put(c.place);
        return columns_[c.place];
    }
    Completeness complete_;
    Column *columns_;
    std::size_t n_, row_;
};

}  // namespace opline
