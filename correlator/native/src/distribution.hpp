// SPDX-License-Identifier: MIT
// How integers are distributed: how many, their sum, the largest, percentiles by nearest rank.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace opline {

// Integers of which the least and the largest are far apart. Up to kExact of them are kept as they are; with more they
// are counted in buckets with fixed edges (each power of two split in 256), so the result does not depend on their order.
class Distribution {
  public:
    static constexpr std::size_t kExact = std::size_t{1} << 18;

    void add(std::int64_t value) {
        if (next_ == end_ || static_cast<std::uint64_t>(value) > UINT32_MAX) return add_another(value);
        *next_++ = static_cast<std::uint32_t>(value);
    }
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
    struct Sum {
        std::uint64_t count = 0;
        std::int64_t total = 0, max = 0;
        void add(std::int64_t value) { add(1, value, value); }
        void add(std::uint64_t values, std::int64_t their_total, std::int64_t their_max);
    };
    std::size_t kept() const { return static_cast<std::size_t>(next_ - values_.get()); }
    bool exact() const { return counted_.count + kept() + others_.size() <= kExact; }
    void add_another(std::int64_t value);
    void make_room(std::size_t values);
    void count_in_buckets();
    std::vector<std::uint32_t> select(const std::vector<std::size_t> &ranks, Sum &sum) const;

    std::unique_ptr<std::uint32_t[]> values_;  // added and not counted in buckets, those that fit
    std::uint32_t *next_ = nullptr, *end_ = nullptr;
    std::vector<std::int64_t> others_;
    Sum counted_;                              // in buckets
    std::vector<std::uint64_t> buckets_;
};

}  // namespace opline
