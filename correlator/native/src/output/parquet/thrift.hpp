// SPDX-License-Identifier: MIT
// Thrift's compact protocol, as much as Parquet's metadata needs (apache/thrift, doc/specs/thrift-compact-protocol.md).
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "output/parquet/encode.hpp"

namespace opline::parquet {

class Thrift {
  public:
    explicit Thrift(Bytes &out) : out_(out) {}
    // Fields of the open struct, in ascending order of their ids.
    void i32(int id, std::int64_t v) { number(id, 5, v); }
    void i64(int id, std::int64_t v) { number(id, 6, v); }
    void byte(int id, std::int8_t v) {
        field(id, 3);
        out_.push_back(static_cast<char>(v));
    }
    void flag(int id, bool v) { field(id, v ? 1 : 2); }
    void binary(int id, std::string_view v) {
        field(id, 8);
        element(v);
    }
    void open(int id) {
        field(id, 12);
        open();
    }
    void list_of_structs(int id, std::size_t n) { list(id, 12, n); }
    void list_of_i32(int id, std::size_t n) { list(id, 5, n); }
    void list_of_binaries(int id, std::size_t n) { list(id, 8, n); }
    // Elements of a list; a struct itself.
    void open() { last_.push_back(0); }
    void close() {
        out_.push_back(0);
        last_.pop_back();
    }
    void element(std::int64_t v) { add_zigzag(out_, v); }
    void element(std::string_view v) {
        add_varint(out_, v.size());
        out_.insert(out_.end(), v.begin(), v.end());
    }

  private:
    void field(int id, int type) {
        const int step = id - last_.back();
        last_.back() = id;
        if (step > 0 && step < 16) {
            out_.push_back(static_cast<char>(step << 4 | type));
            return;
        }
        out_.push_back(static_cast<char>(type));
        add_zigzag(out_, id);
    }
    void number(int id, int type, std::int64_t v) {
        field(id, type);
        add_zigzag(out_, v);
    }
    void list(int id, int type, std::size_t n) {
        field(id, 9);
        if (n < 15) {
            out_.push_back(static_cast<char>(n << 4 | static_cast<unsigned>(type)));
            return;
        }
        out_.push_back(static_cast<char>(0xf0 | type));
        add_varint(out_, n);
    }
    Bytes &out_;
    std::vector<int> last_;  // id of the last field, per open struct
};

}  // namespace opline::parquet
