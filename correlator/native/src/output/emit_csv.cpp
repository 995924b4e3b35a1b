// SPDX-License-Identifier: MIT
// What `opline csv` of a trace is told while ops settle.
#include "output/emit.hpp"

namespace opline {

void Emitter::feed(OpCsv &csv, bool all) {
    csv_ = &csv;
    csv_all_ = all;
}

OpCsv::Stage Emitter::csv_stage(std::uint32_t stage, std::uint32_t kind, std::uint32_t from, std::uint32_t to,
                                std::uint32_t seq) const {
    OpCsv::Stage out;
    out.stage = strings_.at(stage);
    out.kind = strings_.at(kind);
    out.from = strings_.at(from);
    out.to = strings_.at(to);
    out.seq = seq;
    return out;
}

void Emitter::feed_op(const Op &op, const OpRow &r, const OpFacts &facts) {
    if (csv_->form() != OpCsv::Form::kOps || (!facts.complete && !csv_all_)) return;
    const auto known = [](std::int64_t id) { return id >= 0 ? id : kNoTime; };
    OpCsv::Op out;
    out.op_id = static_cast<std::int64_t>(op.serial);
    out.op_class = strings_.at(op.op_class);
    out.object = op.object;
    out.host = strings_.at(op.host);
    out.pid = known(op.pid);
    out.comm = strings_.at(r.first_comm);
    out.begin_tid = known(r.first_tid);
    out.begin_ns = op.begin_ns;
    out.complete = facts.complete;
    out.tainted = facts.tainted;
    out.reason = strings_.at(facts.reason);
    if (facts.complete) {
        out.end_tid = known(r.end_tid);
        out.end_ns = op.end_ns;
        out.latency_ns = op.end_ns - op.begin_ns;
        out.unattributed_ns = r.unattributed_ns;
    }
    if (op.has_length) out.bytes = op.length_bytes;
    if (r.request) {
        out.dev = r.request->dev;
        out.has_sector = r.request->sector != kNoSector;
        out.sector = r.request->sector;
    }
    csv_->op(op.serial, out);
}

void Emitter::feed_stages(const Op &op, const Attribution &a) {
    if (a.stages.empty()) return;
    csv_durations_.clear();
    csv_rows_.clear();
    std::uint32_t seq = 0;
    for (const auto &s : a.stages) {
        if (s.stage >= csv_stages_.size()) csv_stages_.resize(s.stage + 1);
        if (csv_stages_[s.stage] == 0) csv_stages_[s.stage] = csv_->stage_number(strings_.at(s.stage)) + 1;
        const std::uint32_t number = csv_stages_[s.stage] - 1;
        csv_->met(number, op.serial, seq);
        if (csv_->form() == OpCsv::Form::kStages) {
            csv_rows_.push_back(csv_stage(s.stage, s.kind, s.from, s.to, seq));
            OpCsv::Stage &row = csv_rows_.back();
            row.begin_ns = s.begin_ns;
            row.duration_ns = s.duration_ns;
            if (s.tid >= 0) row.tid = s.tid;
            if (s.request != 0) row.request_id = static_cast<std::int64_t>(s.request);
        } else {
            csv_durations_.emplace_back(number, s.duration_ns);
        }
        ++seq;
    }
    if (csv_->form() == OpCsv::Form::kStages)
        csv_->stage_rows(op.serial, static_cast<std::int64_t>(op.serial), csv_rows_);
    else csv_->durations(op.serial, csv_durations_);
}

}  // namespace opline
