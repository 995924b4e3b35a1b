// SPDX-License-Identifier: MIT
#include "stage_stats.hpp"

#include <algorithm>
#include <atomic>
#include <future>
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

std::uint32_t StageStatistics::add_shape(const std::vector<ShapeStage> &stages) {
    Shape shape;
    for (const auto &[name, kind, to_at] : stages) {
        const std::uint32_t place = place_of(name, kind);
        shape.recurs = shape.recurs || std::any_of(shape.parts.begin(), shape.parts.end(), [place](const auto &p) { return p.place == place; });
        shape.parts.push_back({&stages_[place].values, to_at, place});
        shape.width = std::max<std::size_t>(shape.width, to_at + 1);
    }
    shape.times.resize(shape.width);
    shapes_.push_back(std::move(shape));
    return static_cast<std::uint32_t>(shapes_.size());
}

void StageStatistics::count_waiting(Shape &shape) {
    std::size_t from_at = 0;
    for (const auto &part : shape.parts) {
        part.values->add_differences(&shape.times[from_at], &shape.times[part.to_at], shape.width, shape.waiting);
        from_at = part.to_at;
    }
    shape.waiting = 0;
    if (shape.room == kWaiting || shape.ops < kFewOps || room_ + kWaiting * shape.width > kMostWaiting) return;
    shape.room = kWaiting;
    room_ += kWaiting * shape.width;
    shape.times.resize(kWaiting * shape.width);
}

void StageStatistics::op_of_each(const Shape &shape, std::uint64_t op, bool counts, const std::int64_t *times) {
    std::int64_t from_ns = counts ? times[0] : 0;
    std::uint32_t seq = 0;
    for (const auto &part : shape.parts) {
        const Stage &s = stages_[part.place];
        const std::int64_t to_ns = counts ? times[part.to_at] : 0;
        stage(s.name, s.kind, op, seq++, to_ns - from_ns, counts);
        from_ns = to_ns;
    }
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
