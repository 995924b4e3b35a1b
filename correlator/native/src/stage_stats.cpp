// SPDX-License-Identifier: MIT
#include "stage_stats.hpp"

#include <algorithm>
#include <atomic>
#include <future>
#include <numeric>
#include <tuple>

namespace opline {
namespace {

constexpr std::size_t kMaxPlace = 1u << 16;

std::vector<Distribution::Summary> summaries_of(const std::vector<Distribution *> &values, bool two_threads) {
    std::vector<Distribution::Summary> out(values.size());
    std::atomic<std::size_t> next{0};
    auto work = [&] {
        for (std::size_t i; (i = next++) < values.size();) out[i] = values[i]->summary({500, 900, 990, 999});
    };
    std::future<void> other;
    if (two_threads) other = std::async(std::launch::async, work);
    work();
    if (two_threads) other.get();
    return out;
}

}  // namespace

void StageStatistics::first_in_op(Stage &s, std::uint32_t seq, std::uint64_t ops) {
    const std::size_t place = std::min<std::size_t>(seq, kMaxPlace - 1);
    if (place >= s.places.size()) s.places.resize(place + 1);
    s.places[place] += ops;
    s.place_count += ops;
    s.place_sum += seq * ops;
}

std::uint32_t StageStatistics::add_stage(std::uint32_t name, std::uint32_t kind) {
    if (name >= places_.size()) places_.resize(name + 1);
    stages_.emplace_back(arena_);
    stages_.back().name = name;
    stages_.back().kind = kind;
    return (places_[name] = static_cast<std::uint32_t>(stages_.size())) - 1;
}

std::uint32_t StageStatistics::add_shape(const std::vector<ShapeStage> &stages, const std::vector<std::uint32_t> &unknown) {
    Shape shape;
    shape.unknown = unknown;
    shape.each_step = unknown.empty();
    for (const auto &[name, kind, to_at] : stages) {
        const std::uint32_t place = place_of(name, kind);
        shape.recurs = shape.recurs || std::any_of(shape.parts.begin(), shape.parts.end(), [place](const auto &p) { return p.place == place; });
        shape.parts.push_back({to_at, place});
        shape.values.push_back(&stages_[place].values);
        shape.each_step = shape.each_step && !shape.recurs && to_at == shape.parts.size();
        shape.times = std::max<std::size_t>(shape.times, to_at + 1);
    }
    shape.values.push_back(&latency_);
    if (!unknown.empty()) shape.values.push_back(&unknown_);
    shape.width = Distribution::row_width(shape.values.size());
    shape.rows.resize(shape.width);
    shapes_.push_back(std::move(shape));
    return static_cast<std::uint32_t>(shapes_.size());
}

void StageStatistics::count_waiting(Shape &shape) {
    const std::size_t waiting = shape.next / shape.width, all = kWaiting * shape.width;
    Distribution::add_rows(shape.values, shape.rows.data(), waiting);
    unattributed_.add_zeros(waiting);
    if (shape.unknown.empty()) unknown_.add_zeros(waiting);
    shape.next = 0;
    if (shape.rows.size() == all || shape.ops < kFewOps || room_ + all > kMostWaiting) return;
    room_ += all;
    shape.rows.resize(all);
}

// One after the other, each given to take(its number, its duration).
template <class Take>
void StageStatistics::each_duration(const Shape &shape, const std::int64_t *times, Take take) {
    std::int64_t from_ns = times[0], unknown_ns = 0;
    for (std::size_t i = 0; i < shape.parts.size(); ++i) {
        const std::int64_t to_ns = times[shape.parts[i].to_at];
        take(i, to_ns - from_ns);
        if (std::find(shape.unknown.begin(), shape.unknown.end(), i) != shape.unknown.end()) unknown_ns += to_ns - from_ns;
        from_ns = to_ns;
    }
    op(from_ns - times[0], 0, unknown_ns);
}

void StageStatistics::add_durations(Shape &shape, const std::int64_t *times) {
    std::uint32_t *const row = next_row(shape), *to = row;
    std::int64_t from_ns = times[0];
    for (const auto &part : shape.parts) {
        *to++ = static_cast<std::uint32_t>(times[part.to_at] - from_ns);
        from_ns = times[part.to_at];
    }
    const std::int64_t latency_ns = from_ns - times[0];
    if (latency_ns > Steps::kLongest) {
        each_duration(shape, times, [&](std::size_t i, std::int64_t duration_ns) { shape.values[i]->add(duration_ns); });
        return;
    }
    *to++ = static_cast<std::uint32_t>(latency_ns);
    if (!shape.unknown.empty()) *to = std::accumulate(shape.unknown.begin(), shape.unknown.end(), std::uint32_t{0}, [row](std::uint32_t sum, std::uint32_t i) { return sum + row[i]; });
    shape.next += shape.width;
}

// As they lie behind the first, which is 0.
const std::int64_t *StageStatistics::times_of(const Shape &shape, Steps steps) {
    if (times_.size() < shape.times) times_.resize(shape.times);
    for (std::size_t i = 1; i < shape.times; ++i) times_[i] = times_[i - 1] + *steps.ns++;
    return times_.data();
}

void StageStatistics::op_of_each(const Shape &shape, std::uint64_t op, bool counts, const std::int64_t *times) {
    auto meets = [&](std::size_t i, std::int64_t duration_ns) {
        const Stage &s = stages_[shape.parts[i].place];
        stage(s.name, s.kind, op, static_cast<std::uint32_t>(i), duration_ns, counts);
    };
    if (counts) return each_duration(shape, times, meets);
    for (std::size_t i = 0; i < shape.parts.size(); ++i) meets(i, 0);
}

nlohmann::json StageStatistics::json(const std::function<std::string(std::uint32_t)> &text, bool two_threads) {
    using nlohmann::json;
    bool exact = true;
    auto row = [&](const std::string &name, const std::string &kind, const Distribution::Summary &d) {
        exact = exact && d.exact;
        return json{{"stage", name}, {"kind", kind}, {"count", d.count}, {"total_ns", d.total},
                    {"max_ns", d.max}, {"quantiles_ns", d.percentiles}};
    };
    using Order = std::tuple<double, double, std::string, std::uint32_t>;
    std::vector<Order> order;
    for (auto &shape : shapes_) {
        count_waiting(shape);
        for (std::size_t i = 0; i < shape.parts.size() && !shape.recurs; ++i) {
            Stage &s = stages_[shape.parts[i].place];
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
    std::vector<Distribution *> values;
    for (const auto &o : order) values.push_back(&stages_[std::get<3>(o)].values);
    for (Distribution *d : {&unattributed_, &unknown_, &latency_}) values.push_back(d);
    const auto summaries = summaries_of(values, two_threads);
    auto summary = summaries.begin();
    json out;
    out["stages"] = json::array();
    for (const auto &[median, mean, name, n] : order)
        out["stages"].push_back(row(name, text(stages_[n].kind), *summary++));
    out["unattributed"] = row("unattributed", "unattributed", *summary++);
    out["unknown"] = row("unknown", "unknown", *summary++);
    out["latency"] = row("latency", "latency", *summary);
    out["exact"] = exact;
    return out;
}

}  // namespace opline
