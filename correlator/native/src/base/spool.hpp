// SPDX-License-Identifier: MIT
// Records that come in any order and are read by their place, more of them than memory should hold. Pieces of a few MiB
// are sorted and written to a file of the caller's; reading merges them. Records that nearly come in order are hardly
// moved.
#pragma once
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace opline {

class Spool {
  public:
    static constexpr std::size_t kPiece = std::size_t{8} << 20;  // bytes in memory while records come

    // fd: an empty file, open for reading and writing; the caller closes fd. Nothing is written while all records fit
    // into a piece.
    explicit Spool(int fd, std::size_t piece = kPiece) : fd_(fd), piece_(piece) {}

    // Room for a record of at most `size` bytes, to be filled and ended before anything else.
    char *begin(std::size_t size) {
        if (used_ + kHeader + size > buffer_.size()) make_room(size);
        return buffer_.data() + used_ + kHeader;
    }
    void end(std::uint64_t place, std::uint32_t kind, const char *to);

    struct Record {
        std::uint64_t place = 0;
        std::uint32_t kind = 0;
        std::string_view data;  // valid until the next call
    };
    // The next record by place; records of one place in order of addition. False: the end. No records can be added
    // after the first call.
    bool next(Record &);
    // errno of the file's first failed write or read, after which nothing is kept; 0: none.
    int error() const { return error_; }

  private:
    static constexpr std::size_t kHeader = 16;
    struct Source {
        std::vector<char> buffer;
        std::size_t at = 0, end = 0;              // of the bytes in the buffer
        std::uint64_t file_at = 0, file_end = 0;  // of the bytes still in the file
        Record record;
    };
    void make_room(std::size_t size);
    void sort();
    void spill();
    void start();
    bool advance(Source &);
    bool comes_before(std::size_t a, std::size_t b) const {
        const auto &x = merge_.sources[a].record.place, &y = merge_.sources[b].record.place;
        return x != y ? x < y : a < b;
    }

    int fd_, error_ = 0;
    std::size_t piece_, used_ = 0;
    std::vector<char> buffer_, sorted_;
    std::vector<std::pair<std::uint64_t, std::size_t>> index_;  // place, where in the buffer
    bool in_order_ = true, reading_ = false;
    std::vector<std::uint64_t> pieces_;  // ends of the pieces in the file
    struct PieceMerge {
        std::size_t read_size = 0;
        std::vector<Source> sources;
        std::vector<std::size_t> heap;  // of the sources other than current
        std::size_t current = 0;
        bool any = false;  // current is a record
    };
    PieceMerge merge_;
};

}  // namespace opline
