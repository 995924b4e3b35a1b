// SPDX-License-Identifier: MIT
// Tables of columns, filled row by row or some rows at once, taken in chunks.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace opline {

enum class ColumnType : std::uint8_t { kInt64, kUint64, kInt32, kUint32, kBool, kDict, kText };
// in the order of ColumnType; the names of opline/store/schema.py
constexpr const char *kTypeNames[] = {"i64", "u64", "i32", "u32", "bool", "dict", "text"};
constexpr const char *type_name(ColumnType t) { return kTypeNames[static_cast<std::size_t>(t)]; }
// Throws std::runtime_error for an unknown name.
inline ColumnType column_type(std::string_view name) {
    for (std::size_t i = 0; i < std::size(kTypeNames); ++i)
        if (name == kTypeNames[i]) return static_cast<ColumnType>(i);
    throw std::runtime_error("There is no type of column " + std::string(name));
}

// A column during filling: one value of fixed width per row (0 if absent), and, from the first absent row on, one byte
// per row: 1 if absent.
class Column {
  public:
    Column(std::string name, ColumnType type) : name(std::move(name)), type(type) {}
    std::string name;
    ColumnType type;
    std::size_t nulls = 0;
    std::vector<char> text;  // kText: the bytes of all rows

    std::size_t width() const {
        switch (type) {
        case ColumnType::kInt64:
        case ColumnType::kUint64: return 8;
        case ColumnType::kInt32:
        case ColumnType::kUint32:
        case ColumnType::kDict:
        case ColumnType::kText: return 4;  // kText: where the row's text ends
        case ColumnType::kBool: break;
        }
        return 1;
    }
    void reserve(std::size_t rows, std::size_t used) {
        std::unique_ptr<std::uint8_t[]> bigger(new std::uint8_t[rows * width()]);
        if (used != 0) std::memcpy(bigger.get(), data_.get(), used * width());
        data_ = std::move(bigger);
        if (!absent_.empty()) absent_.resize(rows);
        capacity_ = rows;
    }
    template <class T>
    void put(std::size_t row, T v) {
        reinterpret_cast<T *>(data_.get())[row] = v;
    }
    void put_text(std::size_t row, std::string_view v) {
        text.insert(text.end(), v.begin(), v.end());
        put(row, static_cast<std::int32_t>(text.size()));
    }
    void put_absent(std::size_t row) {
        ++nulls;
        if (absent_.empty()) absent_.resize(capacity_);
        absent_[row] = 1;
        if (type == ColumnType::kText) put(row, static_cast<std::int32_t>(text.size()));
        else std::memset(data_.get() + row * width(), 0, width());
    }
    // The storage from the row on: put() writes there.
    template <class T>
    T *from(std::size_t row) {
        return reinterpret_cast<T *>(data_.get()) + row;
    }
    void put_all_absent(std::size_t row, std::size_t rows) {
        nulls += rows;
        if (absent_.empty()) absent_.resize(capacity_);
        std::memset(absent_.data() + row, 1, rows);
        std::memset(data_.get() + row * width(), 0, rows * width());
    }
    bool present(std::size_t row) const { return nulls == 0 || absent_[row] == 0; }
    template <class T>
    T get(std::size_t row) const {
        T v;
        std::memcpy(&v, data_.get() + row * sizeof(T), sizeof(T));
        return v;
    }
    std::string_view get_text(std::size_t row) const {
        const auto begin = row == 0 ? 0 : get<std::int32_t>(row - 1);
        return {text.data() + begin, static_cast<std::size_t>(get<std::int32_t>(row) - begin)};
    }
    void clear() {
        text.clear();
        absent_.clear();
        nulls = 0;
    }

    // One byte per row, 1 if absent; valid only with absent rows.
    const std::uint8_t *absent() const { return absent_.data(); }
    // Arrow's validity bitmap; empty where nothing is absent.
    std::vector<std::uint8_t> validity_bits(std::size_t rows) const {
        return nulls != 0 ? pack(absent_.data(), rows, 0) : std::vector<std::uint8_t>();
    }
    // kBool: Arrow's data.
    std::vector<std::uint8_t> value_bits(std::size_t rows) const { return pack(data_.get(), rows, 1); }
    // All other types: the stored values, 0 if absent; kText: the ends, equal to Arrow's offsets without the first
    // offset, 0.
    const std::uint8_t *values() const { return data_.get(); }

  private:
    // One bit per byte equal to `one`.
    static std::vector<std::uint8_t> pack(const std::uint8_t *bytes, std::size_t rows, std::uint8_t one) {
        std::vector<std::uint8_t> bits((rows + 7) / 8);
        for (std::size_t i = 0; i < rows; ++i) bits[i / 8] |= static_cast<std::uint8_t>((bytes[i] == one) << (i % 8));
        return bits;
    }
    std::unique_ptr<std::uint8_t[]> data_;
    std::vector<std::uint8_t> absent_;  // empty as long as nothing is absent
    std::size_t capacity_ = 0;
};

class Table {
  public:
    Table(std::string name, std::vector<Column> columns) : name(std::move(name)), columns(std::move(columns)) {}
    std::string name;
    std::vector<Column> columns;
    std::size_t rows() const { return rows_; }
    // The index of a new row; all columns must be put at once.
    std::size_t add_row() { return add_rows(1); }
    // The index of the first of so many.
    std::size_t add_rows(std::size_t n) {
        if (rows_ + n > capacity_) {
            capacity_ = std::max({std::size_t{256}, capacity_ * 2, rows_ + n});
            for (auto &c : columns) c.reserve(capacity_, rows_);
        }
        return std::exchange(rows_, rows_ + n);
    }
    void clear() {
        for (auto &c : columns) c.clear();
        rows_ = 0;
    }
    // Without rows.
    Table like() const {
        std::vector<Column> same;
        for (const auto &c : columns) same.emplace_back(c.name, c.type);
        return {name, std::move(same)};
    }

  private:
    std::size_t rows_ = 0, capacity_ = 0;
};

}  // namespace opline
