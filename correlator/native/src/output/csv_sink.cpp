// SPDX-License-Identifier: MIT
#include "output/csv_sink.hpp"

#include "identity/threads.hpp"

namespace opline {

void CsvSink::op(const SettledOp &settled) {
    if (csv_.form() == OpCsv::Rows::kOps && (settled.complete || all_)) row(settled);
    if (!settled.found.stages.empty()) stages(settled);
}

void CsvSink::link(const LinkRow &link, const BatchBio &bio) {
    if (csv_.form() == OpCsv::Rows::kOps) csv_.bio(link.op, bio.bio, io_kind_name(bio.kind));
}

void CsvSink::row(const SettledOp &settled) {
    const Op &op = settled.op;
    const Attribution &found = settled.found;
    const auto known = [](std::int64_t id) { return id >= 0 ? id : kNoTime; };
    OpCsv::Op out;
    out.op_id = static_cast<std::int64_t>(op.serial);
    out.op_class = strings_.at(op.op_class);
    out.object = op.object;
    out.host = strings_.at(op.host);
    out.pid = known(display_number(op.pid));
    out.comm = strings_.at(found.first_comm);
    out.begin_tid = known(display_number(found.first_tid));
    out.begin_ns = op.begin_ns;
    out.complete = settled.complete;
    out.tainted = settled.tainted;
    out.attributes = found.attributes;
    out.reason = strings_.at(settled.reason);
    if (settled.complete) {
        out.end_tid = known(display_number(found.end_tid));
        out.end_ns = op.end_ns;
        out.latency_ns = op.end_ns - op.begin_ns;
        out.unattributed_ns = found.unattributed_ns;
    }
    if (op.has_length) out.bytes = op.length_bytes;
    if (const RequestCut *first = found.first_request()) {
        out.dev = first->dev;
        out.has_sector = first->sector != kNoSector;
        out.sector = first->sector;
    }
    csv_.op(op.serial, out);
}

void CsvSink::stages(const SettledOp &settled) {
    const bool whole_rows = csv_.form() == OpCsv::Rows::kStages;
    const std::uint64_t id = settled.op.serial;
    durations_.clear();
    rows_.clear();
    std::uint32_t seq = 0;
    for (const StageCut &s : settled.found.stages) {
        if (s.stage >= numbers_.size()) numbers_.resize(s.stage + 1);
        if (numbers_[s.stage] == 0) numbers_[s.stage] = csv_.stage_number(strings_.at(s.stage)) + 1;
        const std::uint32_t number = numbers_[s.stage] - 1;
        csv_.met(number, id, seq);
        if (whole_rows) {
            OpCsv::StageRow row;
            row.stage = strings_.at(s.stage);
            row.kind = strings_.at(s.kind);
            row.from = strings_.at(s.from);
            row.to = strings_.at(s.to);
            row.seq = seq;
            row.begin_ns = s.begin_ns;
            row.duration_ns = s.duration_ns;
            if (s.tid >= 0) row.tid = display_number(s.tid);
            if (s.request != 0) row.request_id = static_cast<std::int64_t>(s.request);
            rows_.push_back(row);
        } else {
            durations_.emplace_back(number, s.duration_ns);
        }
        ++seq;
    }
    if (whole_rows) csv_.stage_rows(id, static_cast<std::int64_t>(id), rows_);
    else csv_.durations(id, durations_);
}

}  // namespace opline
