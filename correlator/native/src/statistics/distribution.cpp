// SPDX-License-Identifier: MIT
#include "statistics/distribution.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>
#include <utility>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace opline {
namespace {

constexpr unsigned kSplitBits = 8;  // each power of two in 256 buckets
constexpr std::uint64_t kSplit = 1u << kSplitBits;
constexpr std::size_t kFirstRoom = 64, kWaitForBuckets = 256;

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

// Where a short value stands among all of them: the upper bits of the next one as a float, so each power of two is
// split in as many places, and four are found at once. What is below kSingle has a place of its own.
template <unsigned kBits>
struct Places {
    static constexpr unsigned kDropped = 23 - kBits;
    static constexpr std::uint32_t kOne = 0x3f800000u >> kDropped;
    static constexpr std::size_t kCount = (31u << kBits) + 1, kSingle = (kBits + 1u) << kBits;
    static_assert(kCount <= INT16_MAX);

    static std::uint32_t of(std::uint32_t v) {
        static_assert(sizeof(float) == 4 && std::numeric_limits<float>::is_iec559);
        const float next = static_cast<float>(static_cast<std::int32_t>(v + 1));
        std::uint32_t bits;
        std::memcpy(&bits, &next, sizeof bits);
        return (bits >> kDropped) - kOne;
    }
#ifdef __SSE2__
    static __m128i of(__m128i v) {
        const __m128 next = _mm_cvtepi32_ps(_mm_sub_epi32(v, _mm_set1_epi32(-1)));
        return _mm_sub_epi32(_mm_srli_epi32(_mm_castps_si128(next), kDropped), _mm_set1_epi32(kOne));
    }
#endif
    static std::uint32_t single_value(std::size_t place) {
        const auto bits = (static_cast<std::uint32_t>(place) + kOne) << kDropped;
        float next;
        std::memcpy(&next, &bits, sizeof next);
        return static_cast<std::uint32_t>(next) - 1;
    }
};
using FewPlaces = Places<8>;
using ManyPlaces = Places<10>;  // where there are so many values that fewer of them are to be looked at again
constexpr std::size_t kManyValues = 1u << 16;

struct Totals {
    std::uint64_t sum = 0;
    std::uint32_t most = 0;
};

#ifdef __SSE2__
__m128i four(const std::uint32_t *v) { return _mm_loadu_si128(reinterpret_cast<const __m128i *>(v)); }
#endif

// Into either counter in turns.
template <class Places>
void count_places(const std::uint32_t *v, std::size_t size, std::uint32_t *counts, std::uint32_t *odd_counts,
                  Totals &totals) {
    const std::uint32_t *const end = v + size;
#ifdef __SSE2__
    __m128i sum = _mm_setzero_si128(), most = _mm_setzero_si128();
    for (; end - v >= 4; v += 4) {
        const __m128i values = four(v), places = Places::of(values);
        ++counts[_mm_extract_epi16(places, 0)];
        ++odd_counts[_mm_extract_epi16(places, 2)];
        ++counts[_mm_extract_epi16(places, 4)];
        ++odd_counts[_mm_extract_epi16(places, 6)];
        sum = _mm_add_epi64(
            sum, _mm_add_epi64(_mm_and_si128(values, _mm_set1_epi64x(UINT32_MAX)), _mm_srli_epi64(values, 32)));
        const __m128i more = _mm_cmpgt_epi32(values, most);
        most = _mm_or_si128(_mm_and_si128(more, values), _mm_andnot_si128(more, most));
    }
    alignas(16) std::uint64_t sums[2];
    alignas(16) std::uint32_t mosts[4];
    _mm_store_si128(reinterpret_cast<__m128i *>(sums), sum);
    _mm_store_si128(reinterpret_cast<__m128i *>(mosts), most);
    totals.sum += sums[0] + sums[1];
    totals.most = std::max(totals.most, *std::max_element(std::begin(mosts), std::end(mosts)));
#endif
    for (; v != end; ++v) {
        ++(((end - v) & 1) != 0 ? odd_counts : counts)[Places::of(*v)];
        totals.sum += *v;
        totals.most = std::max(totals.most, *v);
    }
}

// Calls take() with the values that have one of these places, once each, and perhaps with others.
template <class Places, class Take>
void find_in_places(const std::uint32_t *v, std::size_t size, [[maybe_unused]] const std::vector<std::uint32_t> &wanted,
                    Take take) {
    const std::uint32_t *const end = v + size;
#ifdef __SSE2__
    const std::uint32_t *const rest = v + size / 8 * 8;
    for (std::size_t n = 0; n < wanted.size(); n += 4) {
        auto in_each = [&](std::size_t i) {
            return _mm_set1_epi16(static_cast<std::int16_t>(n + i < wanted.size() ? wanted[n + i] : wanted[n]));
        };
        const __m128i first = in_each(0), second = in_each(1), third = in_each(2), fourth = in_each(3);
        for (const std::uint32_t *at = v; at != rest; at += 8) {
            const __m128i places = _mm_packs_epi32(Places::of(four(at)), Places::of(four(at + 4)));
            const __m128i found =
                _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi16(places, first), _mm_cmpeq_epi16(places, second)),
                             _mm_or_si128(_mm_cmpeq_epi16(places, third), _mm_cmpeq_epi16(places, fourth)));
            for (auto lanes = static_cast<std::uint32_t>(_mm_movemask_epi8(found)) & 0x5555; lanes != 0;
                 lanes &= lanes - 1)
                take(at[__builtin_ctz(lanes) / 2]);
        }
    }
    v = rest;
#endif
    std::for_each(v, end, take);
}

}  // namespace

void Distribution::Sum::add(std::uint64_t values, std::int64_t their_total, std::int64_t their_max) {
    if (values == 0) return;
    max = count == 0 ? their_max : std::max(max, their_max);
    total += their_total;
    count += values;
}

// One that does not fit, or for which there is no room.
void Distribution::add_another(std::int64_t value) {
    const bool is_short = static_cast<std::uint64_t>(value) <= kMostShort;
    if (is_short && below_ == 0 && kept() >= kFew) {
        count_small();
        return add(value);
    }
    if (counted_.count != 0 || kept() + others_.size() >= kExact) count_in_buckets();
    if (!is_short) {
        others_.push_back(value);
        return;
    }
    if (next_ == end_)
        make_room(counted_.count != 0 ? kWaitForBuckets : std::min(kExact - kept(), std::max(kFirstRoom, kept())));
    *next_++ = static_cast<std::uint32_t>(value);
}

// More of it: what is there stays where it is.
void Distribution::make_room(std::size_t values) {
    blocks_.push_back({static_cast<std::uint32_t *>(arena_->take(values * sizeof(std::uint32_t))), values});
    room_ += values;
    next_ = blocks_.back().values;
    end_ = next_ + values;
}

void Distribution::keep_nothing() {
    blocks_.clear();
    room_ = 0;
    next_ = end_ = nullptr;
}

// Of what is kept, and from now on.
void Distribution::count_small() {
    below_ = kSmall;
    times_ = static_cast<std::uint64_t *>(arena_->take(kSmall * sizeof *times_));
    std::fill_n(times_, kSmall, 0);
    std::vector<std::uint32_t> all;
    for_each_block([&](const std::uint32_t *v, std::size_t size) { all.insert(all.end(), v, v + size); });
    keep_nothing();
    for (const auto v : all) add(v);
}

Distribution::Sum Distribution::small() const {
    Sum out;
    for (std::uint64_t v = 0; v < below_; ++v) out.add(static_cast<std::int64_t>(v), times_[v]);
    return out;
}

// All, but for those that are counted by themselves; from now on there is room for a few that wait for it.
void Distribution::count_in_buckets(bool small_too) {
    auto count = [this](std::int64_t v, std::uint64_t times = 1) {
        if (times == 0) return;
        const std::size_t b = bucket_of(static_cast<std::uint64_t>(std::max<std::int64_t>(v, 0)));
        if (b >= buckets_.size()) buckets_.resize(b + 1);
        buckets_[b] += times;
        counted_.add(v, times);
    };
    auto count_one = [&count](std::int64_t v) { count(v); };
    for_each_block([&](const std::uint32_t *v, std::size_t size) { std::for_each(v, v + size, count_one); });
    std::for_each(others_.begin(), others_.end(), count_one);
    others_.clear();
    count(0, std::exchange(zeros_, 0));
    for (std::uint64_t v = 0; small_too && v < below_; ++v)
        count(static_cast<std::int64_t>(v), std::exchange(times_[v], 0));
    if (room_ == kWaitForBuckets && blocks_.size() == 1) next_ = blocks_.front().values;
    else keep_nothing();
}

// Of the short values those of these ascending ranks, without sorting all: counts them by place, then looks into the
// places that are asked for.
template <class Places>
std::vector<std::uint32_t> Distribution::select(const std::vector<std::size_t> &ranks, Sum &sum) const {
    struct KeptValues {
        std::size_t place, before;  // values in lower places
        std::vector<std::uint32_t> values;
    };
    // In turns, as a count waits for itself where neighbours are in one place.
    std::vector<std::uint32_t> counts(Places::kCount), odd_counts(Places::kCount);
    Totals totals;
    for_each_block([&](const std::uint32_t *v, std::size_t size) {
        count_places<Places>(v, size, counts.data(), odd_counts.data(), totals);
    });
    sum.add(kept(), static_cast<std::int64_t>(totals.sum), totals.most);
    std::vector<KeptValues> members;
    std::vector<std::size_t> member_of;  // per rank
    std::vector<std::uint32_t> wanted;   // places of several values
    std::size_t place = 0, before = 0;
    for (auto rank : ranks) {
        for (std::size_t here; before + (here = counts[place] + odd_counts[place]) <= rank; ++place) before += here;
        if (members.empty() || members.back().place != place) {
            members.push_back({place, before, {}});
            if (place >= Places::kSingle) wanted.push_back(static_cast<std::uint32_t>(place));
        }
        member_of.push_back(members.size() - 1);
    }
    const std::size_t first_wanted = members.size() - wanted.size();
    if (!wanted.empty()) {
        for (std::size_t i = 0; i < wanted.size(); ++i)
            members[first_wanted + i].values.reserve(counts[wanted[i]] + odd_counts[wanted[i]]);
        auto take = [&](std::uint32_t v) {
            for (std::size_t i = 0; i < wanted.size(); ++i)
                if (wanted[i] == Places::of(v)) members[first_wanted + i].values.push_back(v);
        };
        for_each_block(
            [&](const std::uint32_t *v, std::size_t size) { find_in_places<Places>(v, size, wanted, take); });
    }
    std::vector<std::uint32_t> out;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
        KeptValues &m = members[member_of[i]];
        if (m.place < Places::kSingle) {
            out.push_back(Places::single_value(m.place));
            continue;
        }
        const auto at = m.values.begin() + static_cast<std::ptrdiff_t>(ranks[i] - m.before);
        std::nth_element(m.values.begin(), at, m.values.end());
        out.push_back(*at);
    }
    return out;
}

Distribution::Summary Distribution::summary(const std::vector<std::uint32_t> &per_mille) {
    Summary out;
    out.percentiles.resize(per_mille.size());
    Sum sum = small();
    const std::uint64_t smalls = zeros_ + sum.count, count = counted_.count + smalls + kept() + others_.size();
    out.exact = count <= kExact;
    auto rank_of = [count](std::uint32_t q) { return std::max<std::uint64_t>(1, (count * q + 999) / 1000); };
    if (!out.exact) {
        count_in_buckets(true);
        sum = counted_;
        std::size_t bucket = 0;
        std::uint64_t passed = 0;
        for (std::size_t i = 0; i < per_mille.size(); ++i) {
            while (passed + buckets_[bucket] < rank_of(per_mille[i])) passed += buckets_[bucket++];
            out.percentiles[i] = std::min(middle_of(bucket), sum.max);
        }
    } else if (count != 0) {
        sum.add(0, zeros_);
        std::sort(others_.begin(), others_.end());
        const auto negative =
            static_cast<std::size_t>(std::lower_bound(others_.begin(), others_.end(), 0) - others_.begin());
        std::vector<std::size_t> ranks, places;  // among those that are kept, and in the result
        std::uint64_t passed = zeros_;           // that are below the small one `v`
        std::int64_t v = 0;
        for (std::size_t i = 0; i < per_mille.size(); ++i) {
            auto at = static_cast<std::size_t>(rank_of(per_mille[i]) - 1);
            if (at < negative) {
                out.percentiles[i] = others_[at];
            } else if ((at -= negative) < smalls) {
                while (at >= passed + (below_ != 0 ? times_[v] : 0)) passed += times_[v++];
                out.percentiles[i] = v;
            } else if ((at -= smalls) < kept()) {
                ranks.push_back(at);
                places.push_back(i);
            } else {
                out.percentiles[i] = others_[at - kept() + negative];
            }
        }
        const auto found = kept() < kManyValues ? select<FewPlaces>(ranks, sum) : select<ManyPlaces>(ranks, sum);
        for (std::size_t i = 0; i < found.size(); ++i) out.percentiles[places[i]] = found[i];
        for (auto other : others_) sum.add(other);
    }
    out.count = sum.count;
    out.total = sum.total;
    out.max = sum.max;
    return out;
}

}  // namespace opline
