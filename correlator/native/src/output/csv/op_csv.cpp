// SPDX-License-Identifier: MIT
#include "output/csv/op_csv.hpp"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "output/csv/cells.hpp"

namespace opline {
namespace {

constexpr std::size_t kUnattributed = sizeof(OpAttributes), kLength = kUnattributed + 8, kHead = kLength + 4;
constexpr std::size_t kChunk = std::size_t{1} << 20;  // bytes per call of rows()

// kOp: attributes, unattributed_ns, length of the head, head, tail. kPairs: (stage number, duration). kShape: handle,
// durations of 4 bytes. kClient: client_ns. kBio: the bio's id and kind. kRows: whole rows.

template <class T>
T get(std::string_view data, std::size_t at) {
    T v;
    std::memcpy(&v, data.data() + at, sizeof v);
    return v;
}

void add_cell(std::string &out, std::int64_t v) {
    out += ',';
    if (v != kNoTime) csv::add_number(out, v);
}

void add_cell(std::string &out, std::string_view text) {
    out += ',';
    csv::add_text(out, text);
}

// The cells of an interval between op_id and begin.
void add_middle(std::string &out, const OpCsv::StageRow &s) {
    add_cell(out, static_cast<std::int64_t>(s.seq));
    for (const auto text : {s.stage, s.kind, s.from, s.to}) add_cell(out, text);
}

}  // namespace

void OpCsv::op(std::uint64_t place, const Op &o) {
    constexpr std::size_t kNumbers = 14;
    std::size_t room = kHead + kNumbers * (csv::kRoom + 1) + 16;
    for (const auto text : {o.op_class, o.object, o.host, o.comm, o.reason}) room += csv::text_room(text) + 1;
    char *const begin = spool_.begin(room), *const head = begin + kHead, *at = head;
    const auto number = [&at](std::int64_t v) {
        *at++ = ',';
        if (v != kNoTime) at = csv::put_number(at, v);
    };
    const auto text = [&at](std::string_view v) {
        *at++ = ',';
        at = csv::put_text(at, v);
    };
    at = csv::put_number(at, o.op_id);
    for (const auto v : {o.op_class, o.object, o.host}) text(v);
    number(o.pid);
    text(o.comm);
    for (const auto v : {o.begin_tid, o.end_tid, o.begin_ns, o.end_ns, o.latency_ns}) number(v);
    put(put(put(begin, o.attributes), o.unattributed_ns), static_cast<std::uint32_t>(at - head));
    text(o.complete ? "true" : "false");
    text(o.complete && o.tainted ? "tainted" : o.reason);
    number(o.bytes);
    *at++ = ',';
    if (o.dev != kNoTime) {  // the kernel's own dev_t: 20 bits of minor
        at = csv::put_number(at, o.dev >> 20);
        *at++ = ':';
        at = csv::put_number(at, o.dev & 0xfffff);
    }
    *at++ = ',';
    if (o.has_sector) at = csv::put_number(at, o.sector);
    *at++ = ',';  // the kind of the first bio follows
    spool_.end(place, kOp, at);
}

void OpCsv::client(std::uint64_t place, std::int64_t client_ns) {
    spool_.end(place, kClient, put(spool_.begin(8), client_ns));
}

void OpCsv::bio(std::uint64_t place, std::uint64_t bio_id, std::string_view kind) {
    char *at = put(spool_.begin(8 + kind.size()), bio_id);
    std::memcpy(at, kind.data(), kind.size());
    spool_.end(place, kBio, at + kind.size());
}

std::uint32_t OpCsv::stage_number(std::string_view name) {
    const auto [found, added] = numbers_.emplace(name, static_cast<std::uint32_t>(names_.size()));
    if (added) names_.emplace_back(name);
    return found->second;
}

void OpCsv::durations(std::uint64_t place, const std::vector<std::pair<std::uint32_t, std::int64_t>> &stages) {
    char *at = spool_.begin(12 * stages.size());
    for (const auto &[stage, duration_ns] : stages) at = put(put(at, stage), duration_ns);
    spool_.end(place, kPairs, at);
}

void OpCsv::stage_rows(std::uint64_t place, std::int64_t op_id, const std::vector<StageRow> &stages) {
    text_.clear();
    for (const auto &s : stages) {
        csv::add_number(text_, op_id);
        add_middle(text_, s);
        for (const auto number : {s.begin_ns, s.duration_ns, s.tid, s.request_id}) add_cell(text_, number);
        text_ += '\n';
    }
    char *at = spool_.begin(text_.size());
    std::memcpy(at, text_.data(), text_.size());
    spool_.end(place, kRows, at + text_.size());
}

std::vector<std::string> OpCsv::stages_in_order() {
    std::vector<std::string> out;
    column_.assign(names_.size(), 0);
    const auto found = order_.json([this](std::uint32_t number) { return names_[number]; });
    for (const auto &stage : found["stages"]) {
        const auto name = stage["stage"].get<std::string>();
        column_[numbers_.at(name)] = static_cast<std::uint32_t>(out.size());
        out.push_back(name);
    }
    row_.cells.assign(out.size(), kNoTime);
    return out;
}

void OpCsv::one_place(const Spool::Record &r) {
    const auto add = [this](std::uint32_t column, std::int64_t duration_ns) {
        auto &cell = row_.cells[column];
        cell = cell == kNoTime ? duration_ns : cell + duration_ns;
    };
    switch (r.kind) {
    case kOp: {
        const auto head = get<std::uint32_t>(r.data, kLength);
        row_.attributes = get<OpAttributes>(r.data, 0);
        row_.unattributed_ns = get<std::int64_t>(r.data, kUnattributed);
        row_.head.assign(r.data.substr(kHead, head));
        row_.tail.assign(r.data.substr(kHead + head));
        row_.has_op = true;
        break;
    }
    case kPairs:
        for (std::size_t at = 0; at < r.data.size(); at += 12)
            add(column_[get<std::uint32_t>(r.data, at)], get<std::int64_t>(r.data, at + 4));
        break;
    case kClient: row_.client_ns = get<std::int64_t>(r.data, 0); break;
    case kBio: {
        const auto id = get<std::uint64_t>(r.data, 0);
        if (!row_.first_bio_kind.empty() && row_.first_bio <= id) break;
        row_.first_bio = id;
        row_.first_bio_kind.assign(r.data.substr(8));
        break;
    }
    }
}

void OpCsv::write_row() {
    if (row_.has_op) {
        out_ += row_.head;
        add_cell(out_, row_.client_ns);
        out_ += row_.tail;
        out_ += row_.first_bio_kind;
        for (const auto attribute : kOpAttributes) add_cell(out_, row_.attributes.*attribute);
        const std::size_t used = out_.size();
        out_.resize(used + (csv::kMaxNumber + 1) * (row_.cells.size() + 1) + csv::kRoom);
        char *at = out_.data() + used;
        for (const auto v : row_.cells) {
            *at++ = ',';
            if (v != kNoTime) at = csv::put_number(at, v);
        }
        *at++ = ',';
        if (row_.unattributed_ns != kNoTime) at = csv::put_number(at, row_.unattributed_ns);
        *at++ = '\n';
        out_.resize(static_cast<std::size_t>(at - out_.data()));
    }
    row_.has_op = false;
    std::fill(row_.cells.begin(), row_.cells.end(), kNoTime);
    row_.client_ns = row_.unattributed_ns = kNoTime;
    row_.first_bio_kind.clear();
}

std::string_view OpCsv::rows() {
    if (!started_) {
        started_ = true;
        if (column_.size() != names_.size()) stages_in_order();
        more_ = spool_.next(record_);
        out_.reserve(kChunk + (kChunk >> 2));
    }
    out_.clear();
    while (more_ && out_.size() < kChunk) {
        if (record_.kind == kRows) {
            out_.append(record_.data);
            more_ = spool_.next(record_);
            continue;
        }
        const std::uint64_t place = record_.place;
        do {
            one_place(record_);
            more_ = spool_.next(record_);
        } while (more_ && record_.place == place);
        write_row();
    }
    return out_;
}

}  // namespace opline
