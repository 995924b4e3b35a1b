// SPDX-License-Identifier: MIT
#include "statistics/distribution.hpp"

#include <algorithm>
#include <cmath>

namespace opline {
namespace {

constexpr unsigned kSplitBits = 8;  // each power of two in 256 buckets
constexpr std::uint64_t kSplit = 1u << kSplitBits;

// Values below 512 have a bucket each.
std::size_t bucket_of(std::uint64_t v) {
    const unsigned shift = (63u ^ static_cast<unsigned>(__builtin_clzll(v | kSplit))) - kSplitBits;
    return static_cast<std::size_t>(shift * kSplit + (v >> shift));
}

std::int64_t middle_of(std::size_t bucket) {
    if (bucket < 2 * kSplit) return static_cast<std::int64_t>(bucket);
    const unsigned shift = static_cast<unsigned>(bucket / kSplit - 1);
    return static_cast<std::int64_t>(((bucket % kSplit + kSplit) << shift) + (std::uint64_t{1} << (shift - 1)));
}

}  // namespace

Distribution::Moments Distribution::moments() const {
    Moments out = counted_;
    std::uint32_t least = std::numeric_limits<std::uint32_t>::max();
    std::uint64_t low = 0, high = 0;  // halves of the squares: fewer than 2^32 values
    for (const std::uint32_t value : short_) {
        const std::uint64_t square = std::uint64_t{value} * value;
        least = std::min(least, value);
        low += square & 0xffff'ffff;
        high += square >> 32;
    }
    if (!short_.empty()) out.min = std::min<std::int64_t>(out.min, least);
    out.squares += (static_cast<unsigned __int128>(high) << 32) + low;
    for (const std::int64_t value : others_) out.add(value);
    return out;
}

// Negative values count as 0.
[[gnu::always_inline]] inline void Distribution::count(std::int64_t value) {
    const std::size_t bucket = bucket_of(value < 0 ? 0 : static_cast<std::uint64_t>(value));
    if (__builtin_expect(bucket >= buckets_.size(), 0)) buckets_.resize(bucket + 1);
    ++buckets_[bucket];
}

void Distribution::fill_buckets() {
    for (const std::int64_t value : short_) count(value);
    for (const std::int64_t value : others_) count(value);
    counted_ = moments();
    std::vector<std::uint32_t>().swap(short_);
    std::vector<std::int64_t>().swap(others_);
}

void Distribution::add_to_buckets(std::int64_t value) {
    if (buckets_.empty()) fill_buckets();
    counted_.add(value);
    count(value);
}

// The value with this rank, from 0, among the exact values; `others_` is sorted. Ranks come in ascending order: ranks
// below `sorted` have their place in `short_`.
std::int64_t Distribution::of_rank(std::size_t rank, std::size_t &sorted) {
    const auto negative =
        static_cast<std::size_t>(std::lower_bound(others_.begin(), others_.end(), 0) - others_.begin());
    if (rank < negative) return others_[rank];
    rank -= negative;
    if (rank >= short_.size()) return others_[rank - short_.size() + negative];
    const auto at = short_.begin() + static_cast<std::ptrdiff_t>(rank);
    if (rank >= sorted) std::nth_element(short_.begin() + static_cast<std::ptrdiff_t>(sorted), at, short_.end());
    sorted = std::max(sorted, rank + 1);
    return *at;
}

std::vector<std::pair<std::uint32_t, Distribution::Cell>> Distribution::cells() const {
    std::vector<Cell> all;
    const auto add = [&](std::int64_t value) {
        const std::size_t bucket = bucket_of(value < 0 ? 0 : static_cast<std::uint64_t>(value));
        if (bucket >= all.size()) all.resize(bucket + 1);
        Cell &c = all[bucket];
        c.least = c.count == 0 || value < c.least ? value : c.least;
        c.most = c.count == 0 || value > c.most ? value : c.most;
        c.total += value;
        ++c.count;
    };
    for (const std::int64_t value : short_) add(value);
    for (const std::int64_t value : others_) add(value);
    std::vector<std::pair<std::uint32_t, Cell>> out;
    for (std::size_t bucket = 0; bucket < all.size(); ++bucket)
        if (all[bucket].count != 0) out.emplace_back(static_cast<std::uint32_t>(bucket), all[bucket]);
    return out;
}

std::vector<std::pair<std::uint64_t, std::uint64_t>> Distribution::within(std::int64_t low, std::int64_t past,
                                                                          std::int64_t step) const {
    std::vector<std::uint64_t> places;
    const auto add = [&](std::int64_t value) {
        if (value >= low && value < past) places.push_back(static_cast<std::uint64_t>((value - low) / step));
    };
    for (const std::int64_t value : short_) add(value);
    for (const std::int64_t value : others_) add(value);
    std::sort(places.begin(), places.end());
    std::vector<std::pair<std::uint64_t, std::uint64_t>> out;
    for (const std::uint64_t place : places) {
        if (out.empty() || out.back().first != place) out.emplace_back(place, 0);
        ++out.back().second;
    }
    return out;
}

Distribution::Summary Distribution::summary(const std::vector<std::uint32_t> &per_mille) {
    Summary out;
    out.count = count_;
    out.total = total_;
    out.max = max_;
    out.exact = count_ <= exact_;
    if (count_ > 0) {
        const Moments all = moments();
        const auto n = static_cast<long double>(count_), mean = static_cast<long double>(total_) / n;
        out.min = all.min;
        const long double variance = static_cast<long double>(all.squares) / n - mean * mean;
        out.deviation = static_cast<double>(std::sqrt(std::max(variance, 0.0L)));
    }
    std::sort(others_.begin(), others_.end());
    std::size_t sorted = 0, bucket = 0;
    std::uint64_t passed = 0;  // in lower buckets
    for (const std::uint32_t q : per_mille) {
        const std::uint64_t rank = std::max<std::uint64_t>(1, (count_ * q + 999) / 1000);
        if (count_ == 0) {
            out.percentiles.push_back(0);
        } else if (out.exact) {
            out.percentiles.push_back(of_rank(static_cast<std::size_t>(rank - 1), sorted));
        } else {
            while (passed + buckets_[bucket] < rank) passed += buckets_[bucket++];
            out.percentiles.push_back(std::min(middle_of(bucket), max_));
        }
    }
    return out;
}

}  // namespace opline
