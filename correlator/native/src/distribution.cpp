// SPDX-License-Identifier: MIT
#include "distribution.hpp"

#include <algorithm>
#include <functional>
#include <utility>

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

}  // namespace

void Distribution::Sum::add(std::uint64_t values, std::int64_t their_total, std::int64_t their_max) {
    if (values == 0) return;
    max = count == 0 ? their_max : std::max(max, their_max);
    total += their_total;
    count += values;
}

// One that does not fit, or for which there is no room.
void Distribution::add_another(std::int64_t value) {
    if (counted_.count + kept() + others_.size() >= kExact) count_in_buckets();
    if (static_cast<std::uint64_t>(value) > UINT32_MAX) {
        others_.push_back(value);
        return;
    }
    if (next_ == end_) make_room(counted_.count != 0 ? kWaitForBuckets : std::min(kExact, std::max(kFirstRoom, 2 * kept())));
    *next_++ = static_cast<std::uint32_t>(value);
}

void Distribution::make_room(std::size_t values) {
    const std::size_t n = kept();
    std::unique_ptr<std::uint32_t[]> wider(new std::uint32_t[values]);  // not cleared: it is written before it is read
    std::copy(values_.get(), next_, wider.get());
    values_ = std::move(wider);
    next_ = values_.get() + n;
    end_ = values_.get() + values;
}

// All that are kept; from now on there is room for a few that wait for it.
void Distribution::count_in_buckets() {
    auto count = [this](std::int64_t v) {
        const std::size_t b = bucket_of(static_cast<std::uint64_t>(std::max<std::int64_t>(v, 0)));
        if (b >= buckets_.size()) buckets_.resize(b + 1);
        ++buckets_[b];
        counted_.add(v);
    };
    std::for_each(values_.get(), next_, count);
    std::for_each(others_.begin(), others_.end(), count);
    others_.clear();
    next_ = values_.get();
    if (end_ - next_ != kWaitForBuckets) {
        values_.reset();
        next_ = end_ = nullptr;
    }
}

// Of values_ those of these ascending ranks, without sorting all: counts them in buckets, then sorts the buckets that are
// asked for.
std::vector<std::uint32_t> Distribution::select(const std::vector<std::size_t> &ranks, Sum &sum) const {
    struct Member {
        std::size_t bucket, before;  // values in lower buckets
        std::vector<std::uint32_t> values;
    };
    // In turns, as a count waits for itself where neighbours are in one bucket.
    std::vector<std::uint32_t> counts(bucket_of(UINT32_MAX) + 1), odd_counts(counts.size());
    std::uint64_t total = 0;
    std::uint32_t most = 0;
    auto look = [&](std::uint32_t v, std::vector<std::uint32_t> &in) {
        ++in[bucket_of(v)];
        total += v;
        most = std::max(most, v);
    };
    const std::uint32_t *v = values_.get();
    for (; next_ - v >= 2; v += 2) {
        look(v[0], counts);
        look(v[1], odd_counts);
    }
    if (v != next_) look(*v, counts);
    std::transform(counts.begin(), counts.end(), odd_counts.begin(), counts.begin(), std::plus<>());
    sum.add(kept(), static_cast<std::int64_t>(total), most);
    std::vector<Member> members;
    std::vector<std::size_t> member_of;  // per rank
    std::size_t bucket = 0, before = 0;
    for (auto rank : ranks) {
        while (before + counts[bucket] <= rank) before += counts[bucket++];
        if (members.empty() || members.back().bucket != bucket) members.push_back({bucket, before, {}});
        member_of.push_back(members.size() - 1);
    }
    if (bucket >= 2 * kSplit) {  // below, a bucket is one value
        std::vector<std::uint8_t> wanted(counts.size());
        for (std::size_t i = 0; i < members.size(); ++i) wanted[members[i].bucket] = static_cast<std::uint8_t>(i + 1);
        for (const std::uint32_t *v = values_.get(); v != next_; ++v)
            if (const auto w = wanted[bucket_of(*v)]) members[w - 1u].values.push_back(*v);
        for (auto &m : members) std::sort(m.values.begin(), m.values.end());
    }
    std::vector<std::uint32_t> out;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
        const Member &m = members[member_of[i]];
        out.push_back(m.values.empty() ? static_cast<std::uint32_t>(m.bucket) : m.values[ranks[i] - m.before]);
    }
    return out;
}

Distribution::Summary Distribution::summary(const std::vector<std::uint32_t> &per_mille) {
    Summary out;
    out.percentiles.resize(per_mille.size());
    out.exact = exact();
    if (!out.exact) count_in_buckets();
    Sum sum = counted_;
    const std::uint64_t count = sum.count + kept() + others_.size();
    auto rank_of = [count](std::uint32_t q) { return std::max<std::uint64_t>(1, (count * q + 999) / 1000); };
    if (!out.exact) {
        std::size_t bucket = 0;
        std::uint64_t passed = 0;
        for (std::size_t i = 0; i < per_mille.size(); ++i) {
            while (passed + buckets_[bucket] < rank_of(per_mille[i])) passed += buckets_[bucket++];
            out.percentiles[i] = std::min(middle_of(bucket), sum.max);
        }
    } else if (count != 0) {
        std::sort(others_.begin(), others_.end());
        const auto negative = static_cast<std::size_t>(std::lower_bound(others_.begin(), others_.end(), 0) - others_.begin());
        std::vector<std::size_t> ranks, places;  // in values_, and in the result
        for (std::size_t i = 0; i < per_mille.size(); ++i) {
            const auto at = static_cast<std::size_t>(rank_of(per_mille[i]) - 1);
            if (at < negative) {
                out.percentiles[i] = others_[at];
            } else if (at - negative >= kept()) {
                out.percentiles[i] = others_[at - kept()];
            } else {
                ranks.push_back(at - negative);
                places.push_back(i);
            }
        }
        const auto found = select(ranks, sum);
        for (std::size_t i = 0; i < found.size(); ++i) out.percentiles[places[i]] = found[i];
        for (auto v : others_) sum.add(v);
    }
    out.count = sum.count;
    out.total = sum.total;
    out.max = sum.max;
    return out;
}

}  // namespace opline
