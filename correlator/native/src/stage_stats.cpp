// SPDX-License-Identifier: MIT
#include "stage_stats.hpp"

#include <algorithm>
#include <tuple>

namespace opline {
namespace {

constexpr unsigned kSplitBits = 8;  // each power of two in 256 buckets
constexpr std::uint64_t kSplit = 1u << kSplitBits;
constexpr std::size_t kMaxPlace = 1u << 16;

// Values below 256 have a bucket each.
std::size_t bucket_of(std::uint64_t v) {
    if (v < kSplit) return static_cast<std::size_t>(v);
    const unsigned shift = 63 - static_cast<unsigned>(__builtin_clzll(v)) - kSplitBits;
    return static_cast<std::size_t>(shift * kSplit + (v >> shift));
}

std::int64_t middle_of(std::size_t bucket) {
    if (bucket < 2 * kSplit) return static_cast<std::int64_t>(bucket);
    const unsigned shift = static_cast<unsigned>(bucket / kSplit - 1);
    return static_cast<std::int64_t>(((bucket % kSplit + kSplit) << shift) + (std::uint64_t{1} << (shift - 1)));
}

// The values of these ascending ranks, without sorting all: counts them in buckets, then sorts the buckets that are asked for.
std::vector<std::uint32_t> select(const std::vector<std::uint32_t> &values, const std::vector<std::size_t> &ranks) {
    struct Member {
        std::size_t bucket, before;  // values in lower buckets
        std::vector<std::uint32_t> values;
    };
    std::vector<std::uint32_t> counts(bucket_of(UINT32_MAX) + 1);
    for (auto v : values) ++counts[bucket_of(v)];
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
        for (auto v : values)
            if (const auto w = wanted[bucket_of(v)]) members[w - 1u].values.push_back(v);
        for (auto &m : members) std::sort(m.values.begin(), m.values.end());
    }
    std::vector<std::uint32_t> out;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
        const Member &m = members[member_of[i]];
        out.push_back(m.values.empty() ? static_cast<std::uint32_t>(m.bucket) : m.values[ranks[i] - m.before]);
    }
    return out;
}

}  // namespace

void Distribution::take_waiting() {
    const std::int64_t *const values = waiting_.data();
    const std::size_t n = waiting_count_;
    waiting_count_ = 0;
    if (n == 0) return;
    std::int64_t sum = 0, most = values[0];
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < n; ++i) {
        sum += values[i];
        most = std::max(most, values[i]);
        bits |= static_cast<std::uint64_t>(values[i]);
    }
    max_ = count_ == 0 ? most : std::max(max_, most);
    total_ += sum;
    count_ += n;
    if (count_ > kExact) return count_in_buckets(values, n);
    if (bits > UINT32_MAX) {
        for (std::size_t i = 0; i < n; ++i) {
            if (static_cast<std::uint64_t>(values[i]) <= UINT32_MAX) values_.push_back(static_cast<std::uint32_t>(values[i]));
            else others_.push_back(values[i]);
        }
        return;
    }
    values_.resize(values_.size() + n);
    std::transform(values, values + n, values_.end() - static_cast<std::ptrdiff_t>(n), [](std::int64_t v) { return static_cast<std::uint32_t>(v); });
}

void Distribution::count_in_buckets(const std::int64_t *values, std::size_t n) {
    auto count = [this](std::int64_t v) {
        const std::size_t b = bucket_of(static_cast<std::uint64_t>(std::max<std::int64_t>(v, 0)));
        if (b >= buckets_.size()) buckets_.resize(b + 1);
        ++buckets_[b];
    };
    for (auto v : values_) count(v);
    for (auto v : others_) count(v);
    values_ = {};
    others_ = {};
    std::for_each(values, values + n, count);
}

std::vector<std::int64_t> Distribution::at(const std::vector<std::uint32_t> &per_mille) {
    std::vector<std::int64_t> out(per_mille.size());
    take_waiting();
    if (count_ == 0) return out;
    auto rank_of = [this](std::uint32_t q) { return std::max<std::uint64_t>(1, (count_ * q + 999) / 1000); };
    if (!exact()) {
        std::size_t bucket = 0;
        std::uint64_t passed = 0;
        for (std::size_t i = 0; i < out.size(); ++i) {
            while (passed + buckets_[bucket] < rank_of(per_mille[i])) passed += buckets_[bucket++];
            out[i] = std::min(middle_of(bucket), max_);
        }
        return out;
    }
    std::sort(others_.begin(), others_.end());
    const auto negative = static_cast<std::size_t>(std::lower_bound(others_.begin(), others_.end(), 0) - others_.begin());
    std::vector<std::size_t> ranks, places;  // in values_, and in the result
    for (std::size_t i = 0; i < out.size(); ++i) {
        const auto at = static_cast<std::size_t>(rank_of(per_mille[i]) - 1);
        if (at < negative) {
            out[i] = others_[at];
        } else if (at - negative >= values_.size()) {
            out[i] = others_[at - values_.size()];
        } else {
            ranks.push_back(at - negative);
            places.push_back(i);
        }
    }
    const auto found = ranks.empty() ? std::vector<std::uint32_t>() : select(values_, ranks);
    for (std::size_t i = 0; i < found.size(); ++i) out[places[i]] = found[i];
    return out;
}

void StageStatistics::first_in_op(Stage &s, std::uint32_t seq, std::uint64_t ops) {
    const std::size_t place = std::min<std::size_t>(seq, kMaxPlace - 1);
    if (place >= s.places.size()) s.places.resize(place + 1);
    s.places[place] += ops;
    s.place_count += ops;
    s.place_sum += seq * ops;
}

std::uint32_t StageStatistics::add_stage(std::uint32_t name, std::uint32_t kind) {
    if (name >= places_.size()) places_.resize(name + 1);
    stages_.emplace_back();
    stages_.back().name = name;
    stages_.back().kind = kind;
    return (places_[name] = static_cast<std::uint32_t>(stages_.size())) - 1;
}

std::uint32_t StageStatistics::add_shape(const std::vector<std::pair<std::uint32_t, std::uint32_t>> &stages) {
    Shape shape;
    for (const auto &[name, kind] : stages) {
        const std::uint32_t place = place_of(name, kind);
        shape.recurs = shape.recurs || std::find(shape.stages.begin(), shape.stages.end(), place) != shape.stages.end();
        shape.stages.push_back(place);
    }
    shapes_.push_back(std::move(shape));
    return static_cast<std::uint32_t>(shapes_.size());
}

nlohmann::json StageStatistics::json(const std::function<std::string(std::uint32_t)> &text) {
    using nlohmann::json;
    bool exact = true;
    auto row = [&](const std::string &name, const std::string &kind, Distribution &d) {
        exact = exact && d.exact();
        return json{{"stage", name}, {"kind", kind}, {"count", d.count()}, {"total_ns", d.total()},
                    {"max_ns", d.max()}, {"quantiles_ns", d.at({500, 900, 990, 999})}};
    };
    using Order = std::tuple<double, double, std::string, std::uint32_t>;
    std::vector<Order> order;
    for (auto &shape : shapes_) {
        for (std::size_t i = 0; i < shape.stages.size() && !shape.recurs; ++i) {
            Stage &s = stages_[shape.stages[i]];
            s.rows += shape.ops;
            s.seq_sum += i * shape.ops;
            if (shape.first_ops != 0) first_in_op(s, static_cast<std::uint32_t>(i), shape.first_ops);
        }
        shape.ops = shape.first_ops = 0;
    }
    for (std::uint32_t n = 0; n < stages_.size(); ++n) {
        Stage &s = stages_[n];
        if (s.rows == 0) continue;
        close(s);
        s.op = 0;
        double median = static_cast<double>(s.seq_sum) / static_cast<double>(s.rows), mean = median;
        if (s.place_count != 0) {
            std::uint64_t passed = 0;
            std::size_t place = 0;
            while (passed + s.places[place] < (s.place_count + 1) / 2) passed += s.places[place++];
            median = static_cast<double>(place);
            mean = static_cast<double>(s.place_sum) / static_cast<double>(s.place_count);
        }
        order.emplace_back(median, mean, text(s.name), n);
    }
    std::sort(order.begin(), order.end());
    json out;
    out["stages"] = json::array();
    for (const auto &[median, mean, name, n] : order)
        out["stages"].push_back(row(name, text(stages_[n].kind), stages_[n].values));
    out["unattributed"] = row("unattributed", "unattributed", unattributed_);
    out["unknown"] = row("unknown", "unknown", unknown_);
    out["latency"] = row("latency", "latency", latency_);
    out["exact"] = exact;
    return out;
}

}  // namespace opline
