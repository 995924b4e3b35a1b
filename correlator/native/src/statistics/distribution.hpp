// SPDX-License-Identifier: MIT
// How integers are distributed: how many, their sum, the largest, percentiles by nearest rank.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/pages.hpp"

namespace opline {

// Integers of which the least and the largest are far apart. Up to kExact of them are known as they are; with more they
// are counted in buckets with fixed edges (each power of two split in 256), so the result does not depend on their
// order.
class Distribution {
  public:
    static constexpr std::size_t kExact = std::size_t{1} << 18;

    // Values are kept in the arena, which outlives it.
    explicit Distribution(Arena &arena) : arena_(&arena) {}
    void add(std::int64_t value) {
        const auto number = static_cast<std::uint64_t>(value);
        if (number < below_) ++times_[number];
        else if (number <= kMostShort && next_ != end_) *next_++ = static_cast<std::uint32_t>(number);
        else add_another(value);
    }
    // So many zeros.
    void add_zeros(std::size_t count) { zeros_ += count; }
    // Percentiles are the values of rank ceil(per_mille / 1000 · count), for ascending per_mille; in buckets the middle
    // of the value's: at most 1/512 off. Without values all is 0.
    struct Summary {
        std::uint64_t count = 0;
        std::int64_t total = 0, max = 0;
        bool exact = true;
        std::vector<std::int64_t> percentiles;
    };
    Summary summary(const std::vector<std::uint32_t> &per_mille);

  private:
    // Once there are so many values, those below kSmall are counted, each by itself: 16 KiB instead of four bytes for
    // each.
    static constexpr std::uint64_t kSmall = 2048;
    static constexpr std::size_t kFew = 2048;
    // So much fits into four bytes, and one more into a float.
    static constexpr std::uint64_t kMostShort = INT32_MAX - 1;
    struct Block {
        std::uint32_t *values;
        std::size_t size;
    };
    struct Sum {
        std::uint64_t count = 0;
        std::int64_t total = 0, max = 0;
        void add(std::int64_t value, std::uint64_t times = 1) {
            add(times, value * static_cast<std::int64_t>(times), value);
        }
        void add(std::uint64_t values, std::int64_t their_total, std::int64_t their_max);
    };
    std::size_t kept() const { return room_ - static_cast<std::size_t>(end_ - next_); }
    [[gnu::noinline]] void add_another(std::int64_t value);
    void make_room(std::size_t values);
    void keep_nothing();
    void count_small();
    template <class F>  // void(const std::uint32_t *values, std::size_t size)
    void for_each_block(F f) const {
        for (const auto &b : blocks_)
            f(b.values, &b == &blocks_.back() ? static_cast<std::size_t>(next_ - b.values) : b.size);
    }
    void count_in_buckets(bool small_too = false);
    Sum small() const;
    template <class Places>
    std::vector<std::uint32_t> select(const std::vector<std::size_t> &ranks, Sum &sum) const;

    std::uint64_t below_ = 0;         // kSmall once such values are counted
    std::uint64_t *times_ = nullptr;  // how often each of them was added
    std::uint32_t *next_ = nullptr, *end_ = nullptr;
    // of what was added and is counted nowhere, as far as it is short; the last one has room
    std::vector<Block> blocks_;
    std::size_t room_ = 0;   // in all of them
    std::size_t zeros_ = 0;  // that are nowhere else
    std::vector<std::int64_t> others_;
    Sum counted_;  // in buckets
    std::vector<std::uint64_t> buckets_;
    Arena *arena_;
};

}  // namespace opline
