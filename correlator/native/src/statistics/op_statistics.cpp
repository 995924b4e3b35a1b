// SPDX-License-Identifier: MIT
#include "statistics/op_statistics.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "identity/threads.hpp"

namespace opline {

void OpStatistics::op(const SettledOp &settled) {
    if (!settled.complete) return;
    const Op &op = settled.op;
    const Attribution &found = settled.found;
    const bool counted = counts(op.op_class, settled.tainted);
    std::uint32_t seq = 0;
    for (const auto &s : found.stages) stages_.stage(s.stage, s.kind, op.serial, seq++, s.duration_ns, counted);
    if (!counted) return;
    if (op.io.take_unseen) ++takes_unseen_;
    stages_.op(op.end_ns - op.begin_ns, found.unattributed_ns, found.unknown_ns);
    if (settled.program != 0) {
        ProgramOps &p = program(op.pid, settled.program);
        ++p.ops;
        p.comm = settled.program;
    } else if (found.passed == 0) ++program(op.pid, 0).ops;
    else count_program(op.serial, op.pid, found.first_tid, found.first_comm);
}

OpStatistics::OpClass &OpStatistics::another_class(std::uint32_t id) {
    auto [found, added] = classes_.insert(id);
    const auto &name = strings_.at(id);
    if (added && !only_.empty()) found->counts = std::find(only_.begin(), only_.end(), name) != only_.end();
    else if (added)
        found->counts = std::none_of(without_.begin(), without_.end(), [&](const std::string &begin) {
            return name.compare(0, begin.size(), begin) == 0;
        });
    recent_class_id_ = id;
    return *(recent_class_ = found);
}

nlohmann::json OpStatistics::json() {
    auto out = stages_.json([this](std::uint32_t id) { return strings_.at(id); });
    out["tainted"] = tainted_;
    out["takes_unseen"] = takes_unseen_;
    out["programs"] = nlohmann::json::array();
    programs_.for_each([&](std::uint64_t key, const ProgramOps &p) {
        out["programs"].push_back({{"pid", display_number(static_cast<std::int32_t>(key >> 32))},
                                   {"name", strings_.at(p.comm)},
                                   {"ops", p.ops}});
    });
    out["classes"] = nlohmann::json::object();
    classes_.for_each(
        [&](std::uint32_t id, const OpClass &c) { out["classes"][std::string(strings_.at(id))] = c.ops; });
    return out;
}

}  // namespace opline
