// SPDX-License-Identifier: MIT
#include "statistics/op_statistics.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

namespace opline {

void OpStatistics::add_shape(ShapeAttribution &shape) {
    std::vector<StageStatistics::ShapeStage> stages;
    for (const auto &c : shape.cuts) stages.push_back({c.stage, c.kind, c.to_at});
    shape.statistics = stages_.add_shape(stages, shape.unknown);
}

void OpStatistics::count(const ShapedOp &op, ShapeAttribution &shape, bool tainted) {
    const bool counted = counts(op.op_class, tainted);
    if (shape.statistics == 0) add_shape(shape);
    stages_.op_of_shape(shape.statistics, op.serial, counted, op.list.times);
    if (counted) count_program(op.serial, op.pid, op.list.tid, op.list.comm);
}

void OpStatistics::count(const Op &op, const Attribution &found, bool tainted) {
    const bool counted = counts(op.op_class, tainted);
    std::uint32_t seq = 0;
    for (const auto &s : found.stages) stages_.stage(s.stage, s.kind, op.serial, seq++, s.duration_ns, counted);
    if (!counted) return;
    stages_.op(op.end_ns - op.begin_ns, found.unattributed_ns, found.unknown_ns);
    if (op.transitions.empty()) ++program(op.pid).ops;
    else count_program(op.serial, op.pid, op.transitions.first_tid(), op.transitions.first_comm());
}

OpStatistics::OpClass &OpStatistics::another_class(std::uint32_t id) {
    auto [found, added] = classes_.insert(id);
    if (added && !only_.empty()) found->counts = std::find(only_.begin(), only_.end(), strings_.at(id)) != only_.end();
    recent_class_id_ = id;
    return *(recent_class_ = found);
}

nlohmann::json OpStatistics::json() {
    auto out = stages_.json([this](std::uint32_t id) { return strings_.at(id); });
    out["tainted"] = tainted_;
    out["programs"] = nlohmann::json::array();
    programs_.for_each([&](std::int32_t pid, const Program &p) {
        out["programs"].push_back({{"pid", pid}, {"name", strings_.at(p.comm)}, {"ops", p.ops}});
    });
    out["classes"] = nlohmann::json::object();
    classes_.for_each(
        [&](std::uint32_t id, const OpClass &c) { out["classes"][std::string(strings_.at(id))] = c.ops; });
    return out;
}

}  // namespace opline
