// SPDX-License-Identifier: MIT
// Rows of an op that its shape says most of.
#include <algorithm>
#include <numeric>

#include "output/emit.hpp"
#include "output/emit_rows.hpp"

namespace opline {

using namespace columns;

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
    block.all(transitions::op_id, static_cast<std::int64_t>(op.serial))
        .repeat(transitions::seq, rows.seq.data())
        .copy(transitions::ts_ns, list.times())
        .repeat(transitions::point, rows.label.data());
    const auto some = [](std::uint32_t id) { return id != 0; };
    if (rows.has_event) block.repeat(transitions::event, rows.event.data());
    else
        block.each(
            transitions::event, [&](std::size_t i) { return rows.event[i]; }, some);
    bool has_ids = true, one_process = true;
    for (std::uint32_t i = 0; i < list.threads(); ++i) {
        has_ids = has_ids && list.tid(i) >= 0 && list.pid(i) >= 0;
        one_process = one_process && list.pid(i) == list.pid(0);
    }
    const auto known = [](auto id) { return id >= 0; };
    if (has_ids) block.each(transitions::tid, [&](std::size_t i) { return list.tid(rows.thread[i]); });
    else
        block.each(
            transitions::tid, [&](std::size_t i) { return list.tid(rows.thread[i]); }, known);
    if (has_ids && one_process) block.all(transitions::pid, list.pid(0));
    else
        block.each(
            transitions::pid, [&](std::size_t i) { return list.pid(rows.thread[i]); }, known);
    block.each(
        transitions::cpu, [&](std::size_t i) { return list.cpu(i); }, [](std::uint32_t v) { return v != kNoCpu; });
    block.each(
        transitions::comm, [&](std::size_t i) { return list.comm(i); }, some);
    block.repeat(transitions::evidence, rows.evidence.data()).repeat(transitions::late, rows.never.data());
    block.repeat(transitions::aside, rows.aside.data()).absent(transitions::batch_id, transitions::child);
}

void Emitter::stages_of_shape(const Op &op, const ShapeAttribution &shape, const ShapeRows &rows,
                              const std::int64_t *times, const std::vector<StateSplit> &states) {
    const TransitionList &list = op.transitions;
    const auto &cuts = shape.cuts;
    RowBlock block(table(kStages), cuts.size());
    block.all(stages::op_id, static_cast<std::int64_t>(op.serial))
        .repeat(stages::seq, rows.seq.data())
        .repeat(stages::stage, rows.stage.data())
        .repeat(stages::kind, rows.kind.data());
    block.repeat(stages::from_point, rows.from.data()).repeat(stages::to_point, rows.to.data());
    block.each(stages::begin_ns, [&](std::size_t i) { return times[cuts[i].from_at]; });
    block.each(stages::duration_ns, [&](std::size_t i) { return times[cuts[i].to_at] - times[cuts[i].from_at]; });
    bool has_ids = op.requests.empty();
    for (std::uint32_t i = 0; i < list.threads(); ++i) has_ids = has_ids && list.tid(i) >= 0;
    const auto tid = [&](std::size_t i) { return Attributor::tid_of(op, cuts[i]); };
    const auto known = [](std::int64_t v) { return v >= 0; };
    if (has_ids) block.each(stages::tid, tid);
    else block.each(stages::tid, tid, known);
    if (op.requests.empty()) block.absent(stages::request_id);
    else
        block.each(
            stages::request_id,
            [&](std::size_t i) {
                return cuts[i].of_request ? static_cast<std::int64_t>(op.requests.front().request) : -1;
            },
            known);
    if (states.empty()) {
        // nobody knows what threads did
        block.absent(stages::states_tid, stages::on_cpu_ns, stages::runnable_ns, stages::blocked_io_ns);
        block.absent(stages::blocked_ns, stages::woken_by_tid, stages::woken_by_comm);
        return;
    }
    const bool all_known = std::all_of(states.begin(), states.end(), [](const StateSplit &s) { return s.known; });
    const auto put = [&](I64 column, std::int64_t StateSplit::*field) {
        if (all_known) block.each(column, [&](std::size_t i) { return states[i].*field; });
        else
            block.each(
                column, [&](std::size_t i) { return states[i].known ? states[i].*field : -1; }, known);
    };
    put(stages::states_tid, &StateSplit::tid);
    put(stages::on_cpu_ns, &StateSplit::on_cpu_ns);
    put(stages::runnable_ns, &StateSplit::runnable_ns);
    put(stages::blocked_io_ns, &StateSplit::blocked_io_ns);
    put(stages::blocked_ns, &StateSplit::blocked_ns);
    block.each(
        stages::woken_by_tid, [&](std::size_t i) { return states[i].woken_by_tid; }, known);
    block.each(
        stages::woken_by_comm, [&](std::size_t i) { return states[i].woken_by_comm; },
        [](std::uint32_t id) { return id != 0; });
}

}  // namespace opline
