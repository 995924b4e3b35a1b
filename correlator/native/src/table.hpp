// SPDX-License-Identifier: MIT
// Columns in Arrow's layout (a validity bitmap and a data buffer each), filled row by row, taken in chunks.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace opline {

enum class ColumnType : std::uint8_t { kInt64, kUint64, kInt32, kUint32, kBool, kDict, kText };

// Bytes that only grow, until they are cleared; the capacity stays.
class Buffer {
  public:
    void append(const void *p, std::size_t n) {
        if (size_ + n > capacity_) grow(size_ + n);
        std::memcpy(data_.get() + size_, p, n);
        size_ += n;
    }
    template <class T>
    void put(T v) {
        if (size_ + sizeof(T) > capacity_) grow(size_ + sizeof(T));
        std::memcpy(data_.get() + size_, &v, sizeof(T));
        size_ += sizeof(T);
    }
    std::uint8_t *data() { return data_.get(); }
    const std::uint8_t *data() const { return data_.get(); }
    std::size_t size() const { return size_; }
    void clear() { size_ = 0; }

  private:
    void grow(std::size_t wanted) {
        const std::size_t capacity = std::max<std::size_t>(wanted, capacity_ == 0 ? 4096 : capacity_ * 2);
        std::unique_ptr<std::uint8_t[]> bigger(new std::uint8_t[capacity]);
        if (size_ != 0) std::memcpy(bigger.get(), data_.get(), size_);
        data_ = std::move(bigger);
        capacity_ = capacity;
    }
    std::unique_ptr<std::uint8_t[]> data_;
    std::size_t size_ = 0, capacity_ = 0;
};

class Column {
  public:
    Column(std::string name, ColumnType type) : name(std::move(name)), type(type) {}
    std::string name;
    ColumnType type;
    Buffer data;      // little-endian values; kBool: bits; kDict: uint32 into the string pool; kText: bytes
    Buffer validity;  // bit set: present; empty as long as nothing is absent
    Buffer offsets;   // kText: int32, rows + 1
    std::size_t rows = 0;
    std::size_t nulls = 0;

    void put(std::int64_t v) { data.put(v); mark(); }
    void put(std::uint64_t v) { data.put(v); mark(); }
    void put(std::int32_t v) { data.put(v); mark(); }
    void put(std::uint32_t v) { data.put(v); mark(); }
    void put(bool v) {
        put_bit(data, v);
        mark();
    }
    void put(std::string_view v) {
        if (rows == 0) offsets.put(std::int32_t{0});
        data.append(v.data(), v.size());
        offsets.put(static_cast<std::int32_t>(data.size()));
        mark();
    }
    void put_absent() {
        switch (type) {
        case ColumnType::kInt64:
        case ColumnType::kUint64: data.put(std::int64_t{0}); break;
        case ColumnType::kInt32:
        case ColumnType::kUint32:
        case ColumnType::kDict: data.put(std::int32_t{0}); break;
        case ColumnType::kBool: put_bit(data, false); break;
        case ColumnType::kText:
            if (rows == 0) offsets.put(std::int32_t{0});
            offsets.put(static_cast<std::int32_t>(data.size()));
            break;
        }
        if (nulls++ == 0) {  // everything so far was present
            for (std::size_t i = 0; i < rows / 8; ++i) validity.put(std::uint8_t{0xff});
            if (rows % 8 != 0) validity.put(static_cast<std::uint8_t>((1u << (rows % 8)) - 1));
        }
        put_bit(validity, false);
        ++rows;
    }
    bool present(std::size_t row) const { return nulls == 0 || (validity.data()[row / 8] >> (row % 8) & 1) != 0; }
    void clear() {
        data.clear();
        validity.clear();
        offsets.clear();
        rows = nulls = 0;
    }

  private:
    void put_bit(Buffer &bits, bool v) {
        if (rows % 8 == 0) bits.put(std::uint8_t{0});
        if (v) bits.data()[rows / 8] |= static_cast<std::uint8_t>(1u << (rows % 8));
    }
    void mark() {
        if (nulls != 0) put_bit(validity, true);
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
