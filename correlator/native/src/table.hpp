// SPDX-License-Identifier: MIT
// Columns in Arrow's layout (a validity bitmap and a data buffer each), filled row by row, taken in chunks.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace opline {

enum class ColumnType : std::uint8_t { kInt64, kUint64, kInt32, kUint32, kBool, kDict, kText };

class Column {
  public:
    Column(std::string name, ColumnType type) : name(std::move(name)), type(type) {}
    std::string name;
    ColumnType type;
    std::vector<std::uint8_t> data;      // little-endian values; kBool: bits; kDict: uint32 into the string pool; kText: bytes
    std::vector<std::uint8_t> validity;  // bit set: present
    std::vector<std::int32_t> offsets;   // kText: rows + 1
    std::size_t rows = 0;
    std::size_t nulls = 0;

    void put(std::int64_t v) { append(&v, 8); mark(true); }
    void put(std::uint64_t v) { append(&v, 8); mark(true); }
    void put(std::int32_t v) { append(&v, 4); mark(true); }
    void put(std::uint32_t v) { append(&v, 4); mark(true); }
    void put(bool v) {
        if (rows % 8 == 0) data.push_back(0);
        if (v) data[rows / 8] |= static_cast<std::uint8_t>(1u << (rows % 8));
        mark(true);
    }
    void put(std::string_view v) {
        if (offsets.empty()) offsets.push_back(0);
        data.insert(data.end(), v.begin(), v.end());
        offsets.push_back(static_cast<std::int32_t>(data.size()));
        mark(true);
    }
    void put_absent() {
        switch (type) {
        case ColumnType::kInt64:
        case ColumnType::kUint64: { std::int64_t z = 0; append(&z, 8); break; }
        case ColumnType::kInt32:
        case ColumnType::kUint32:
        case ColumnType::kDict: { std::int32_t z = 0; append(&z, 4); break; }
        case ColumnType::kBool: if (rows % 8 == 0) data.push_back(0); break;
        case ColumnType::kText:
            if (offsets.empty()) offsets.push_back(0);
            offsets.push_back(static_cast<std::int32_t>(data.size()));
            break;
        }
        mark(false);
    }
    void clear() { data.clear(); validity.clear(); offsets.clear(); rows = 0; nulls = 0; }

  private:
    void append(const void *p, std::size_t n) {
        auto b = static_cast<const std::uint8_t *>(p);
        data.insert(data.end(), b, b + n);
    }
    void mark(bool present) {
        if (rows % 8 == 0) validity.push_back(0);
        if (present) validity[rows / 8] |= static_cast<std::uint8_t>(1u << (rows % 8));
        else ++nulls;
        ++rows;
    }
};

struct Table {
    std::string name;
    std::vector<Column> columns;
    std::size_t rows() const { return columns.empty() ? 0 : columns.front().rows; }
    void clear() { for (auto &c : columns) c.clear(); }
};

}  // namespace opline
