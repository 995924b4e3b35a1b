// SPDX-License-Identifier: MIT
// How integers are distributed: how many, their sum, the least and the largest, the standard deviation, percentiles by
// nearest rank.
#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace opline {

// Up to kExact integers are kept exactly; more integers are counted in buckets with fixed edges (each power of two
// split in 256), so the result does not depend on their order.
class Distribution {
  public:
    static constexpr std::size_t kExact = std::size_t{1} << 18;
    static constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();

    // `exact`: limit of exact values.
    explicit Distribution(std::size_t exact = kExact) : exact_(exact) {}

    void add(std::int64_t value) {
        max_ = count_ == 0 || value > max_ ? value : max_;
        total_ += value;
        if (++count_ > exact_) return add_to_buckets(value);
        if (value >= 0 && value <= kMostShort) short_.push_back(static_cast<std::uint32_t>(value));
        else others_.push_back(value);
    }
    // Percentiles are the values of rank ceil(per_mille / 1000 · count), for ascending per_mille; in buckets the middle
    // of the value's: at most 1/512 off. Without values all is 0.
    struct Summary {
        std::uint64_t count = 0;
        std::int64_t total = 0, min = 0, max = 0;
        double deviation = 0;  // of all values: the root of the mean square distance from their mean
        bool exact = true;
        std::vector<std::int64_t> percentiles;
    };
    Summary summary(const std::vector<std::uint32_t> &per_mille);

    // For integers kept exactly: the integers in one bucket.
    struct Cell {
        std::uint64_t count = 0;
        std::int64_t total = 0, least = 0, most = 0;
    };
    std::vector<std::pair<std::uint32_t, Cell>> cells() const;  // ascending; none is empty
    // How many are where between `low` and `past`, in steps: (step, count), ascending, none is empty.
    std::vector<std::pair<std::uint64_t, std::uint64_t>> within(std::int64_t low, std::int64_t past,
                                                                std::int64_t step) const;
    unsigned __int128 squares() const { return moments().squares; }  // the sum
    std::size_t kept() const { return short_.capacity() * sizeof(short_[0]) + others_.capacity() * sizeof(others_[0]); }

  private:
    static constexpr std::int64_t kMostShort = std::numeric_limits<std::uint32_t>::max();
    void add_to_buckets(std::int64_t value);
    void count(std::int64_t value);
    void fill_buckets();
    // The parts of min and deviation. For exact values counted on demand.
    struct Moments {
        std::int64_t min = std::numeric_limits<std::int64_t>::max();
        unsigned __int128 squares = 0;  // an integer: the order of the values changes nothing
        void add(std::int64_t value) {
            if (value < min) min = value;
            const auto size = static_cast<unsigned __int128>(value < 0 ? -static_cast<__int128>(value) : value);
            squares += size * size;
        }
    };
    Moments moments() const;  // of all values
    std::int64_t of_rank(std::size_t rank, std::size_t &sorted);

    std::size_t exact_;
    std::uint64_t count_ = 0;
    std::int64_t total_ = 0, max_ = 0;
    Moments counted_;                   // of the values in buckets
    std::vector<std::uint32_t> short_;  // without buckets: values of at most four bytes, and all other values
    std::vector<std::int64_t> others_;
    std::vector<std::uint64_t> buckets_;
};

}  // namespace opline
