// SPDX-License-Identifier: MIT
#include "statistics/stage_stats.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <numeric>
#include <tuple>

namespace opline {
namespace {

constexpr std::size_t kMaxPlace = 1u << 16;

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

std::uint32_t StageStatistics::add_shape(const std::vector<ShapeStage> &stages,
                                         const std::vector<std::uint32_t> &unknown) {
    Shape shape;
    shape.unknown = unknown;
    for (const auto &[name, kind, to_at] : stages) {
        const std::uint32_t place = place_of(name, kind);
        shape.recurs = shape.recurs || std::any_of(shape.parts.begin(), shape.parts.end(),
                                                   [place](const auto &p) { return p.place == place; });
        shape.parts.push_back({to_at, place, &stages_[place].values});
    }
    shapes_.push_back(std::move(shape));
    return static_cast<std::uint32_t>(shapes_.size());
}

void StageStatistics::add_durations(const Shape &shape, const std::int64_t *times) {
    std::int64_t from_ns = times[0];
    for (const auto &part : shape.parts) {
        part.values->add(times[part.to_at] - from_ns);
        from_ns = times[part.to_at];
    }
    latency_.add(from_ns - times[0]);
    if (!shape.unknown.empty()) unknown_.add(unknown_ns(shape, times));
}

// How long the parts of kind unknown take.
std::int64_t StageStatistics::unknown_ns(const Shape &shape, const std::int64_t *times) {
    return std::accumulate(
        shape.unknown.begin(), shape.unknown.end(), std::int64_t{0}, [&](std::int64_t sum, std::uint32_t part) {
            return sum + times[shape.parts[part].to_at] - (part == 0 ? times[0] : times[shape.parts[part - 1].to_at]);
        });
}

void StageStatistics::op_of_each(const Shape &shape, std::uint64_t op_id, bool counts, const std::int64_t *times) {
    std::int64_t from_ns = counts ? times[0] : 0;
    for (std::size_t i = 0; i < shape.parts.size(); ++i) {
        const Stage &s = stages_[shape.parts[i].place];
        const std::int64_t to_ns = counts ? times[shape.parts[i].to_at] : from_ns;
        stage(s.name, s.kind, op_id, static_cast<std::uint32_t>(i), to_ns - from_ns, counts);
        from_ns = to_ns;
    }
    if (counts) op(from_ns - times[0], 0, unknown_ns(shape, times));
}

nlohmann::json StageStatistics::json(const std::function<std::string(std::uint32_t)> &text) {
    using nlohmann::json;
    bool exact = true;
    auto row = [&](const std::string &name, const std::string &kind, Distribution &values) {
        const auto d = values.summary({500, 900, 990, 999});
        exact = exact && d.exact;
        return json{{"stage", name},       {"kind", kind},    {"count", d.count},
                    {"total_ns", d.total}, {"max_ns", d.max}, {"quantiles_ns", d.percentiles}};
    };
    using Order = std::tuple<double, double, std::string, std::uint32_t>;
    std::vector<Order> order;
    for (auto &shape : shapes_) {
        unattributed_.add_zeros(shape.counted);
        if (shape.unknown.empty()) unknown_.add_zeros(shape.counted);
        for (std::size_t i = 0; i < shape.parts.size() && !shape.recurs; ++i) {
            Stage &s = stages_[shape.parts[i].place];
            s.rows += shape.ops;
            s.seq_sum += i * shape.ops;
            if (shape.first_ops != 0) first_in_op(s, static_cast<std::uint32_t>(i), shape.first_ops);
        }
        shape.ops = shape.first_ops = shape.counted = 0;
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
