// SPDX-License-Identifier: MIT
#include "statistics/stage_stats.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <tuple>

namespace opline {
namespace {

constexpr std::size_t kMaxPlace = 1u << 16;

std::string text_of(unsigned __int128 number) {
    std::string digits;
    do digits.insert(digits.begin(), static_cast<char>('0' + static_cast<int>(number % 10)));
    while ((number /= 10) != 0);
    return digits;
}

}  // namespace

void StageStatistics::first_in_op(Stage &s, std::uint32_t seq) {
    const std::size_t place = std::min<std::size_t>(seq, kMaxPlace - 1);
    if (place >= s.places.size()) s.places.resize(place + 1);
    ++s.places[place];
    ++s.place_count;
    s.place_sum += seq;
}

std::uint32_t StageStatistics::add_stage(std::uint32_t name, std::uint32_t kind) {
    if (name >= places_.size()) places_.resize(name + 1);
    stages_.emplace_back(exact_);
    stages_.back().name = name;
    stages_.back().kind = kind;
    return (places_[name] = static_cast<std::uint32_t>(stages_.size())) - 1;
}

nlohmann::json StageStatistics::json(const std::function<std::string(std::uint32_t)> &text) {
    using nlohmann::json;
    bool exact = true;
    auto row = [&](const std::string &name, const std::string &kind, Distribution &values) {
        const auto d = values.summary({500, 900, 990, 999});
        exact = exact && d.exact;
        return json{{"stage", name},   {"kind", kind},    {"count", d.count},      {"total_ns", d.total},
                    {"min_ns", d.min}, {"max_ns", d.max}, {"std_ns", d.deviation}, {"quantiles_ns", d.percentiles}};
    };
    using Order = std::tuple<double, double, std::string, std::uint32_t>;
    std::vector<Order> order;
    for (std::uint32_t n = 0; n < stages_.size(); ++n) {
        Stage &s = stages_[n];
        if (s.rows == 0) continue;
        finish(s);
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

nlohmann::json StageStatistics::sums(const std::function<std::string(std::uint32_t)> &text) {
    using nlohmann::json;
    json out{{"cells", json::object()}, {"squares", json::object()}};
    const auto group = [&](const std::string &name, const Distribution &values) {
        std::vector<std::int64_t> columns[5];
        for (const auto &[bucket, cell] : values.cells()) {
            const std::int64_t numbers[] = {bucket, static_cast<std::int64_t>(cell.count), cell.total, cell.least,
                                            cell.most};
            for (std::size_t i = 0; i < 5; ++i) columns[i].push_back(numbers[i]);
        }
        if (columns[0].empty()) return;
        out["cells"][name] = columns;
        out["squares"][name] = text_of(values.squares());
    };
    json kinds = json::array(), places = json::array();
    for (Stage &s : stages_) {
        if (s.rows == 0) continue;
        finish(s);
        const std::string name = text(s.name);
        group("stage " + name, s.values);
        kinds.push_back({name, text(s.kind)});
        for (std::size_t place = 0; place < s.places.size(); ++place)
            if (s.places[place] != 0) places.push_back({name, place, s.places[place]});
    }
    group("of unattributed", unattributed_);
    group("of unknown", unknown_);
    group("of latency", latency_);
    out["kinds"] = std::move(kinds);
    out["places"] = std::move(places);
    return out;
}

const Distribution *StageStatistics::values(std::uint32_t name) {
    if (name >= places_.size() || places_[name] == 0) return nullptr;
    Stage &s = stages_[places_[name] - 1];
    finish(s);
    return &s.values;
}

std::size_t StageStatistics::kept() const {
    std::size_t bytes = unattributed_.kept() + unknown_.kept() + latency_.kept();
    for (const Stage &s : stages_) bytes += s.values.kept();
    return bytes;
}

}  // namespace opline
