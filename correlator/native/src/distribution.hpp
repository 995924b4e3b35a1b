// SPDX-License-Identifier: MIT
// How integers are distributed: how many, their sum, the largest, percentiles by nearest rank.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "pages.hpp"

namespace opline {

// Integers of which the least and the largest are far apart. Up to kExact of them are kept as they are; with more they
// are counted in buckets with fixed edges (each power of two split in 256), so the result does not depend on their order.
class Distribution {
  public:
    static constexpr std::size_t kExact = std::size_t{1} << 18;

    // Values are kept in the arena, which outlives it.
    explicit Distribution(Arena &arena) : arena_(&arena) {}
    void add(std::int64_t value) {
        if (next_ == end_ || static_cast<std::uint64_t>(value) > kMostShort) return add_another(value);
        *next_++ = static_cast<std::uint32_t>(value);
    }
    // So many zeros.
    void add_zeros(std::size_t count) { zeros_ += count; }
    // So many rows of values up to kMostShort, of which the i-th is for of[i].
    static void add_rows(const std::vector<Distribution *> &of, const std::uint32_t *rows, std::size_t count);
    static constexpr std::size_t row_width(std::size_t columns) { return (columns + 3) / 4 * 4; }  // with some that are nobody's
    // So much fits into four bytes, and one more into a float.
    static constexpr std::uint64_t kMostShort = INT32_MAX - 1;
    // Percentiles are the values of rank ceil(per_mille / 1000 · count), for ascending per_mille; in buckets the middle of
    // the value's: at most 1/512 off. Without values all is 0.
    struct Summary {
        std::uint64_t count = 0;
        std::int64_t total = 0, max = 0;
        bool exact = true;
        std::vector<std::int64_t> percentiles;
    };
    Summary summary(const std::vector<std::uint32_t> &per_mille);

  private:
    struct Block {
        std::uint32_t *values;
        std::size_t size;
    };
    struct Sum {
        std::uint64_t count = 0;
        std::int64_t total = 0, max = 0;
        void add(std::int64_t value) { add(1, value, value); }
        void add(std::uint64_t values, std::int64_t their_total, std::int64_t their_max);
    };
    std::size_t kept() const { return room_ - static_cast<std::size_t>(end_ - next_); }
    std::uint64_t count() const { return counted_.count + zeros_ + kept() + others_.size(); }
    void add_another(std::int64_t value);
    void add_column(const std::uint32_t *values, std::size_t width, std::size_t count);
    void make_room(std::size_t values);
    template <class F>  // void(const std::uint32_t *values, std::size_t size)
    void for_each_block(F f) const {
        for (const auto &b : blocks_) f(b.values, &b == &blocks_.back() ? static_cast<std::size_t>(next_ - b.values) : b.size);
    }
    void count_in_buckets();
    template <class Places>
    std::vector<std::uint32_t> select(const std::vector<std::size_t> &ranks, Sum &sum) const;

    Arena *arena_;
    std::vector<Block> blocks_;  // of what was added and not counted in buckets, as far as it is short; the last one has room
    std::size_t room_ = 0;       // in all of them
    std::uint32_t *next_ = nullptr, *end_ = nullptr;
    std::size_t zeros_ = 0;      // that were not kept, nor counted in buckets
    std::vector<std::int64_t> others_;
    Sum counted_;                              // in buckets
    std::vector<std::uint64_t> buckets_;
};

}  // namespace opline
