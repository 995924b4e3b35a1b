// SPDX-License-Identifier: MIT
// Rows of an op that its shape says most of.
#include <algorithm>
#include <numeric>

#include "output/emit.hpp"
#include "output/emit_rows.hpp"

namespace opline {

std::uint32_t Emitter::evidence_name(const TransitionKind &t) const {
    return t.evidence == Evidence::kKey ? key_evidence_[t.key_space] : evidence_[static_cast<std::size_t>(t.evidence)];
}

Emitter::ShapeRows &Emitter::rows_of(const TransitionList &list, ShapeAttribution &shape) {
    if (shape.rows != 0) return shape_rows_[shape.rows - 1];
    ShapeRows rows;
    const std::size_t n = list.size();
    rows.seq.resize(std::max(n, shape.cuts.size()));
    std::iota(rows.seq.begin(), rows.seq.end(), 0u);
    rows.event.resize(n);
    rows.evidence.resize(n);
    rows.never.resize(n);
    rows.thread.resize(n);
    std::uint32_t at = list.shape();
    for (std::size_t i = n; i-- > 0;) {
        const Shapes::Node &node = list.shapes().node(at);
        rows.event[i] = node.kind.event;
        rows.has_event = rows.has_event && node.kind.event != 0;
        rows.evidence[i] = evidence_name(node.kind);
        rows.thread[i] = node.thread;
        at = node.parent;
    }
    for (const auto &p : shape.transitions) {
        rows.label.push_back(p.label);
        rows.aside.push_back(p.aside);
    }
    for (const auto &c : shape.cuts) {
        rows.stage.push_back(c.stage);
        rows.kind.push_back(c.kind);
        rows.from.push_back(c.from);
        rows.to.push_back(c.to);
    }
    shape_rows_.push_back(std::move(rows));
    shape.rows = static_cast<std::uint32_t>(shape_rows_.size());
    return shape_rows_.back();
}

void Emitter::transitions_of_shape(const Op &op, const ShapeRows &rows) {
    const TransitionList &list = op.transitions;
    const std::size_t n = list.size();
    RowBlock block(table(kTransitions), n);
    block.all(static_cast<std::int64_t>(op.serial))
        .repeat(rows.seq.data())
        .copy(list.times())
        .repeat(rows.label.data());
    const auto some = [](std::uint32_t id) { return id != 0; };
    if (rows.has_event) block.repeat(rows.event.data());
    else block.each<std::uint32_t>([&](std::size_t i) { return rows.event[i]; }, some);
    bool has_ids = true, one_process = true;
    for (std::uint32_t i = 0; i < list.threads(); ++i) {
        has_ids = has_ids && list.tid(i) >= 0 && list.pid(i) >= 0;
        one_process = one_process && list.pid(i) == list.pid(0);
    }
    const auto known = [](auto id) { return id >= 0; };
    if (has_ids) block.each<std::int64_t>([&](std::size_t i) { return list.tid(rows.thread[i]); });
    else block.each<std::int64_t>([&](std::size_t i) { return list.tid(rows.thread[i]); }, known);
    if (has_ids && one_process) block.all(list.pid(0));
    else block.each<std::int32_t>([&](std::size_t i) { return list.pid(rows.thread[i]); }, known);
    block.each<std::uint32_t>([&](std::size_t i) { return list.cpu(i); }, [](std::uint32_t v) { return v != kNoCpu; });
    block.each<std::uint32_t>([&](std::size_t i) { return list.comm(i); }, some);
    block.repeat(rows.evidence.data()).repeat(rows.never.data()).repeat(rows.aside.data()).absent(2);
}

void Emitter::stages_of_shape(const Op &op, const ShapeAttribution &shape, const ShapeRows &rows,
                              const std::int64_t *times, const std::vector<StateSplit> &states) {
    const TransitionList &list = op.transitions;
    const auto &cuts = shape.cuts;
    RowBlock block(table(kStages), cuts.size());
    block.all(static_cast<std::int64_t>(op.serial))
        .repeat(rows.seq.data())
        .repeat(rows.stage.data())
        .repeat(rows.kind.data());
    block.repeat(rows.from.data()).repeat(rows.to.data());
    block.each<std::int64_t>([&](std::size_t i) { return times[cuts[i].from_at]; });
    block.each<std::int64_t>([&](std::size_t i) { return times[cuts[i].to_at] - times[cuts[i].from_at]; });
    bool has_ids = op.requests.empty();
    for (std::uint32_t i = 0; i < list.threads(); ++i) has_ids = has_ids && list.tid(i) >= 0;
    const auto tid = [&](std::size_t i) { return Attributor::tid_of(op, cuts[i]); };
    const auto known = [](std::int64_t v) { return v >= 0; };
    if (has_ids) block.each<std::int64_t>(tid);
    else block.each<std::int64_t>(tid, known);
    if (op.requests.empty()) block.absent(1);
    else
        block.each<std::int64_t>(
            [&](std::size_t i) {
                return cuts[i].of_request ? static_cast<std::int64_t>(op.requests.front().request) : -1;
            },
            known);
    if (states.empty()) {
        block.absent(7);  // nobody knows what threads did
        return;
    }
    const bool all_known = std::all_of(states.begin(), states.end(), [](const StateSplit &s) { return s.known; });
    for (const auto field : {&StateSplit::tid, &StateSplit::on_cpu_ns, &StateSplit::runnable_ns,
                             &StateSplit::blocked_io_ns, &StateSplit::blocked_ns})
        if (all_known) block.each<std::int64_t>([&](std::size_t i) { return states[i].*field; });
        else block.each<std::int64_t>([&](std::size_t i) { return states[i].known ? states[i].*field : -1; }, known);
    block.each<std::int64_t>([&](std::size_t i) { return states[i].woken_by_tid; }, known);
    block.each<std::uint32_t>([&](std::size_t i) { return states[i].woken_by_comm; },
                              [](std::uint32_t id) { return id != 0; });
}

}  // namespace opline
