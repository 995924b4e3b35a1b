// SPDX-License-Identifier: MIT
#include "output/emit.hpp"

#include <algorithm>
#include <stdexcept>

#include "output/emit_rows.hpp"

namespace opline {
namespace {

Table make(const char *name, std::initializer_list<std::pair<const char *, ColumnType>> columns) {
    std::vector<Column> made;
    for (const auto &[column, type] : columns) made.emplace_back(column, type);
    return Table(name, std::move(made));
}

constexpr auto I64 = ColumnType::kInt64;
constexpr auto U64 = ColumnType::kUint64;
constexpr auto I32 = ColumnType::kInt32;
constexpr auto U32 = ColumnType::kUint32;
constexpr auto BOOL = ColumnType::kBool;
constexpr auto DICT = ColumnType::kDict;
constexpr auto TEXT = ColumnType::kText;

}  // namespace

std::string rwbs_letters(std::uint32_t r) {
    std::string s;
    if (r & rwbs::kPreflush) s += 'F';
    if (r & rwbs::kWrite) s += 'W';
    else if (r & rwbs::kDiscard) s += 'D';
    else if (r & rwbs::kSecure) s += "DE";
    else if (r & rwbs::kFlush) s += 'F';
    else if (r & rwbs::kRead) s += 'R';
    else s += 'N';
    if (r & rwbs::kFua) s += 'F';
    if (r & rwbs::kRahead) s += 'A';
    if (r & rwbs::kSync) s += 'S';
    if (r & rwbs::kMeta) s += 'M';
    if (r & rwbs::kBarrier) s += 'B';
    return s;
}

Emitter::Emitter(StringPool &strings, const std::vector<std::string> &key_space_names) : strings_(strings) {
    evidence_ = {strings.intern("begin"), 0, strings.intern("thread"), strings.intern("batch"),
                 strings.intern("completion")};
    for (const auto &name : key_space_names) key_evidence_.push_back(strings.intern("key:" + name));
    tables_.push_back(make("ops", {{"op_id", I64},        {"class", DICT},        {"object", TEXT},
                                   {"key", TEXT},         {"host", DICT},         {"pid", I32},
                                   {"comm", DICT},        {"begin_tid", I64},     {"end_tid", I64},
                                   {"begin_ns", I64},     {"end_ns", I64},        {"latency_ns", I64},
                                   {"complete", BOOL},    {"reason", DICT},       {"tainted", BOOL},
                                   {"offset_bytes", I64}, {"length_bytes", I64},  {"transition_count", U32},
                                   {"late_count", U32},   {"request_count", U32}, {"dev", U32},
                                   {"sector", U64},       {"no_request", DICT},   {"unattributed_ns", I64},
                                   {"unknown_ns", I64}}));
    tables_.push_back(make("transitions", {{"op_id", I64},
                                           {"seq", U32},
                                           {"ts_ns", I64},
                                           {"point", DICT},
                                           {"event", DICT},
                                           {"tid", I64},
                                           {"pid", I32},
                                           {"cpu", U32},
                                           {"comm", DICT},
                                           {"evidence", DICT},
                                           {"late", BOOL},
                                           {"aside", BOOL},
                                           {"batch_id", I64},
                                           {"child", I32}}));
    tables_.push_back(make("stages", {{"op_id", I64},
                                      {"seq", U32},
                                      {"stage", DICT},
                                      {"kind", DICT},
                                      {"from_point", DICT},
                                      {"to_point", DICT},
                                      {"begin_ns", I64},
                                      {"duration_ns", I64},
                                      {"tid", I64},
                                      {"request_id", I64},
                                      {"states_tid", I64},
                                      {"on_cpu_ns", I64},
                                      {"runnable_ns", I64},
                                      {"blocked_io_ns", I64},
                                      {"blocked_ns", I64},
                                      {"woken_by_tid", I64},
                                      {"woken_by_comm", DICT}}));
    tables_.push_back(make("requests", {{"request_id", I64},     {"dev", U32},        {"sector", U64},
                                        {"nr_sectors", U32},     {"kind", DICT},      {"rwbs", DICT},
                                        {"queue_ns", I64},       {"getrq_ns", I64},   {"insert_ns", I64},
                                        {"first_issue_ns", I64}, {"issue_ns", I64},   {"complete_ns", I64},
                                        {"q2c_ns", I64},         {"d2c_ns", I64},     {"queue_tid", I32},
                                        {"queue_comm", DICT},    {"issue_tid", I32},  {"issue_comm", DICT},
                                        {"queue_cpu", U32},      {"issue_cpu", U32},  {"complete_cpu", U32},
                                        {"error", I32},          {"bio_count", U32},  {"merge_count", U32},
                                        {"requeue_count", U32},  {"in_flight", U32},  {"op_count", U32},
                                        {"op_id", I64},          {"ambiguous", BOOL}, {"outcome", DICT},
                                        {"flushed_by", I64}}));
    tables_.push_back(make("bios", {{"bio_id", I64},
                                    {"request_id", I64},
                                    {"dev", U32},
                                    {"sector", U64},
                                    {"nr_sectors", U32},
                                    {"kind", DICT},
                                    {"queue_ns", I64},
                                    {"getrq_ns", I64},
                                    {"merge_ns", I64},
                                    {"tid", I32},
                                    {"comm", DICT},
                                    {"parent_id", I64},
                                    {"split_from_id", I64},
                                    {"op_id", I64},
                                    {"op_by_thread", I64},
                                    {"op_by_sector", I64},
                                    {"op_by_extent", I64},
                                    {"sector_candidates", U32},
                                    {"batch_id", I64}}));
    tables_.push_back(make("links", {{"op_id", I64},
                                     {"bio_id", I64},
                                     {"request_id", I64},
                                     {"evidence", DICT},
                                     {"request_evidence", DICT},
                                     {"confidence", DICT},
                                     {"bytes", U64},
                                     {"shared", BOOL},
                                     {"ambiguous", BOOL}}));
    tables_.push_back(make("deferred", {{"op_id", I64},
                                        {"bio_id", I64},
                                        {"request_id", I64},
                                        {"file", DICT},
                                        {"bytes", U64},
                                        {"written_ns", I64},
                                        {"queue_ns", I64},
                                        {"issue_ns", I64},
                                        {"complete_ns", I64},
                                        {"tid", I32},
                                        {"comm", DICT},
                                        {"evidence", DICT},
                                        {"confidence", DICT},
                                        {"shared", BOOL},
                                        {"ambiguous", BOOL}}));
    tables_.push_back(make("batches", {{"batch_id", I64},
                                       {"space", DICT},
                                       {"tid", I32},
                                       {"begin_ns", I64},
                                       {"end_ns", I64},
                                       {"member_count", U32},
                                       {"request_count", U32},
                                       {"declared_count", U32}}));
    tables_.push_back(make("fates", {{"event", DICT}, {"fate", DICT}, {"count", U64}}));
    tables_.push_back(
        make("discarded", {{"stream", TEXT}, {"begin_ns", I64}, {"end_ns", I64}, {"count", U64}, {"packets", BOOL}}));
    tables_.push_back(make("losses", {{"loss", DICT}, {"severity", DICT}, {"origin", DICT}, {"count", U64}}));
    kept_.assign(tables_.size(), 1);
}

void Emitter::keep(const std::vector<std::string> &names) {
    kept_.assign(tables_.size(), 0);
    with_states_ = false;
    for (const auto &name : names) {
        if (name == "states") {
            with_states_ = true;
            continue;
        }
        auto it = std::find_if(tables_.begin(), tables_.end(), [&](const Table &t) { return t.name == name; });
        if (it == tables_.end()) throw std::runtime_error("There is no table " + name);
        kept_[static_cast<std::size_t>(it - tables_.begin())] = 1;
    }
}

bool Emitter::keeps_states() const { return kept(kStages) && with_states_; }
bool Emitter::keeps_ops() const { return kept(kOps) || kept(kTransitions) || kept(kStages); }

std::size_t Emitter::pending_rows() const {
    std::size_t most = 0;
    for (const auto &t : tables_) most = std::max(most, t.rows());
    return most;
}

bool Emitter::keeps_transitions() const { return kept(kTransitions); }
bool Emitter::keeps_requests() const { return kept(kRequests) || kept(kBios); }
bool Emitter::takes_links() const { return kept(kLinks) || (csv_ && csv_->form() == OpCsv::Form::kOps); }

std::uint32_t Emitter::rwbs_name(std::uint32_t r) {
    if (r >= 4096) return strings_.intern(rwbs_letters(r));
    if (rwbs_names_.empty()) rwbs_names_.resize(4096);
    if (rwbs_names_[r] == 0) rwbs_names_[r] = strings_.intern(rwbs_letters(r)) + 1;
    return rwbs_names_[r] - 1;
}

std::uint32_t Emitter::kind_name(IoKind k) { return word(kind_names_[static_cast<std::size_t>(k)], io_kind_name(k)); }

void Emitter::op(const Op &op, const Attribution &a, const OpFacts &facts) {
    const auto id = static_cast<std::int64_t>(op.serial);
    std::uint32_t seq = 0;
    OpRow r;
    for (const auto &p : a.transitions) {
        const Transition &t = p.t();
        if (p.late) ++r.late;
        else r.end_tid = t.tid;
        if (r.transitions++ == 0) {
            r.first_comm = t.comm;
            r.first_tid = t.tid;
        }
        if (!kept(kTransitions)) continue;
        Row row(table(kTransitions));
        row.i64(id).u32(seq++).i64(t.ts_ns).dict(p.label).dict_or_absent(t.event).i64_if(t.tid >= 0, t.tid);
        row.i32_if(t.pid >= 0, t.pid).u32_if(t.cpu != kNoCpu, t.cpu).dict_or_absent(t.comm);
        row.dict(evidence_name(t));
        row.flag(p.late)
            .flag(p.aside)
            .i64_if(t.batch >= 0, t.batch)
            .i32_if(p.child != 0, static_cast<std::int32_t>(p.child));
    }
    seq = 0;
    if (kept(kStages))
        for (const auto &s : a.stages) {
            static const StateSplit unknown;
            const StateSplit &split = a.states.empty() ? unknown : a.states[seq];
            Row row(table(kStages));
            row.i64(id).u32(seq++).dict(s.stage).dict(s.kind).dict(s.from).dict(s.to).i64(s.begin_ns);
            row.i64(s.duration_ns)
                .i64_if(s.tid >= 0, s.tid)
                .i64_if(s.request != 0, static_cast<std::int64_t>(s.request));
            row.i64_if(split.known, split.tid)
                .i64_if(split.known, split.on_cpu_ns)
                .i64_if(split.known, split.runnable_ns);
            row.i64_if(split.known, split.blocked_io_ns).i64_if(split.known, split.blocked_ns);
            row.i64_if(split.woken_by_tid >= 0, split.woken_by_tid).dict_or_absent(split.woken_by_comm);
        }
    for (const auto &cut : a.requests)
        if (!r.request || cut.q < r.request->q) r.request = &cut;
    r.requests = static_cast<std::uint32_t>(a.requests.size());
    r.unattributed_ns = a.unattributed_ns;
    r.unknown_ns = a.unknown_ns;
    if (csv_) {
        feed_op(op, r, facts);
        feed_stages(op, a);
    }
    op_row(op, r, facts);
}

void Emitter::op_of_shape(const Op &op, ShapeAttribution &shape, const OpFacts &facts, const std::int64_t *times,
                          const std::vector<StateSplit> &states) {
    const TransitionList &list = op.transitions;
    OpRow r;
    r.transitions = static_cast<std::uint32_t>(list.size());
    r.first_comm = list.first_comm();
    r.first_tid = list.first_tid();
    r.end_tid = list.last_tid();
    r.requests = static_cast<std::uint32_t>(op.requests.size());
    if (!op.requests.empty()) r.request = &op.requests.front();
    if (keeps_ops()) {
        const ShapeRows &rows = rows_of(list, shape);
        if (kept(kTransitions)) transitions_of_shape(op, rows);
        if (kept(kStages) && !shape.cuts.empty()) stages_of_shape(op, shape, rows, times, states);
        r.unknown_ns = shape.unknown_ns(times);
        op_row(op, r, facts);
    }
    if (!csv_) return;
    if (shape.csv == 0) {
        csv_rows_.clear();
        for (const auto &c : shape.cuts)
            csv_rows_.push_back(csv_stage(c.stage, c.kind, c.from, c.to, static_cast<std::uint32_t>(csv_rows_.size())));
        shape.csv = csv_->add_shape(csv_rows_);
    }
    feed_op(op, r, facts);
    csv_->op_of_shape(shape.csv, op.serial, [&](std::size_t i) {
        const auto &c = shape.cuts[i];
        const std::int64_t tid = Attributor::tid_of(op, c);
        return OpCsv::Times{times[c.from_at], times[c.to_at] - times[c.from_at], tid >= 0 ? tid : kNoTime,
                            c.of_request ? static_cast<std::int64_t>(r.request->request) : kNoTime};
    });
}

void Emitter::op_row(const Op &op, const OpRow &r, const OpFacts &facts) {
    if (!kept(kOps)) return;
    const bool ended = facts.complete;
    const RequestCut *request = r.request;
    Row row(table(kOps));
    row.i64(static_cast<std::int64_t>(op.serial))
        .dict_or_absent(op.op_class)
        .text_or_absent(op.object)
        .text_or_absent(op.key_text);
    row.dict_or_absent(op.host)
        .i32_if(op.pid >= 0, op.pid)
        .dict_or_absent(r.first_comm)
        .i64_if(r.first_tid >= 0, r.first_tid);
    row.i64_if(ended && r.end_tid >= 0, r.end_tid);
    row.i64(op.begin_ns).i64_if(ended, op.end_ns).i64_if(ended, op.end_ns - op.begin_ns).flag(ended);
    row.dict_or_absent(facts.reason).flag(facts.tainted).i64_if(op.has_offset, op.offset_bytes);
    row.i64_if(op.has_length, op.length_bytes).u32(r.transitions).u32(r.late);
    row.u32(r.requests).u32_if(request != nullptr, request ? request->dev : 0);
    row.u64_if(request && request->sector != kNoSector, request ? request->sector : 0).dict_or_absent(facts.no_request);
    row.i64_if(ended, r.unattributed_ns).i64_if(ended, r.unknown_ns);
}

void Emitter::request(const Request &r, const Flush *flush, const Served &served) {
    if (!kept(kRequests)) return;
    const bool done = r.complete_ns != kNoTime;
    Row row(table(kRequests));
    row.i64(static_cast<std::int64_t>(r.id)).u32(r.dev).u64_if(r.sector != kNoSector, r.sector).u32(r.nr_sectors);
    row.dict(kind_name(r.kind)).dict(rwbs_name(r.rwbs)).time(r.queue_ns).time(r.getrq_ns).time(r.insert_ns);
    const auto issue_ns = flush ? flush->issue_ns : r.issue_ns;
    row.time(flush ? issue_ns : r.first_issue_ns).time(issue_ns).time(r.complete_ns);
    row.i64_if(done && r.queue_ns != kNoTime,
               r.complete_ns - (done && r.queue_ns != kNoTime ? r.queue_ns : r.complete_ns));
    row.i64_if(done && issue_ns != kNoTime, r.complete_ns - (done && issue_ns != kNoTime ? issue_ns : r.complete_ns));
    row.i32_if(r.queue_tid >= 0, r.queue_tid).dict_or_absent(r.queue_comm).i32_if(r.issue_tid >= 0, r.issue_tid);
    row.dict_or_absent(r.issue_comm)
        .u32_if(r.queue_cpu != kNoCpu, r.queue_cpu)
        .u32_if(r.issue_cpu != kNoCpu, r.issue_cpu);
    row.u32_if(r.complete_cpu != kNoCpu, r.complete_cpu).i32_if(done, r.error);
    row.u32(static_cast<std::uint32_t>(r.bios.size())).u32(r.merges).u32(r.requeues);
    row.u32_if(r.first_issue_ns != kNoTime && r.in_flight_known, r.in_flight).u32(served.ops);
    row.i64_if(served.only != 0, static_cast<std::int64_t>(served.only == 0 ? 0 : serial_of(served.only)))
        .flag(r.ambiguous);
    constexpr std::array<std::string_view, 4> outcomes = {"absorbed", "reused", "completed", "open"};
    const std::size_t outcome = r.absorbed_by != 0 ? 0 : r.reused ? 1 : done ? 2 : 3;
    row.dict(word(outcomes_[outcome], outcomes[outcome]));
    row.i64_if(flush != nullptr, flush ? static_cast<std::int64_t>(flush->request) : 0);
}

void Emitter::bio(const Bio &b, const BioLink *link) {
    if (!kept(kBios)) return;
    auto op_of = [](std::uint64_t ref) { return static_cast<std::int64_t>(ref == 0 ? 0 : serial_of(ref)); };
    const std::uint64_t chosen = link ? link->chosen : b.owner.op;
    Row row(table(kBios));
    row.i64(static_cast<std::int64_t>(b.id)).i64_if(b.request != 0, static_cast<std::int64_t>(b.request)).u32(b.dev);
    row.u64_if(b.sector != kNoSector, b.sector)
        .u32(b.nr_sectors)
        .dict(kind_name(b.kind))
        .time(b.queue_ns)
        .time(b.getrq_ns)
        .time(b.merge_ns);
    row.i32_if(b.tid >= 0, b.tid).dict_or_absent(b.comm).i64_if(b.parent != 0, static_cast<std::int64_t>(b.parent));
    row.i64_if(b.split_from != 0, static_cast<std::int64_t>(b.split_from)).i64_if(chosen != 0, op_of(chosen));
    row.i64_if(link && link->by_thread != 0, op_of(link ? link->by_thread : 0));
    row.i64_if(link && link->by_sector != 0, op_of(link ? link->by_sector : 0));
    row.i64_if(link && link->by_extent != 0, op_of(link ? link->by_extent : 0));
    row.u32_if(link && !link->inherited, link ? link->candidates : 0);
    row.i64_if(b.owner.batch != 0, static_cast<std::int64_t>(b.owner.batch) - 1);
}

std::uint32_t Emitter::rules_name(std::uint32_t rules) {
    constexpr std::pair<std::uint32_t, const char *> names[] = {{rule::kThread, "thread"}, {rule::kSector, "sector"},
                                                                {rule::kExtent, "extent"}, {rule::kPage, "page"},
                                                                {rule::kBatch, "batch"},   {rule::kParent, "parent"}};
    if (rules_names_.empty()) rules_names_.resize(64);
    if (rules_names_[rules] == 0) {
        std::string text;
        for (const auto &[bit, name] : names)
            if (rules & bit) text += (text.empty() ? "" : "+") + std::string(name);
        rules_names_[rules] = strings_.intern(text);
    }
    return rules_names_[rules];
}

std::uint32_t Emitter::confidence_name(std::uint32_t rules, bool ambiguous, bool doubtful) {
    const bool two = (rules & rule::kThread) != 0 && (rules & (rule::kSector | rule::kExtent | rule::kPage)) != 0;
    constexpr std::array<std::string_view, 3> confidences = {"low", "medium", "high"};
    const std::size_t confidence = ambiguous || doubtful ? 0 : two ? 2 : 1;
    return word(confidences_[confidence], confidences[confidence]);
}

void Emitter::link(const LinkRow &l, std::uint64_t bio, IoKind kind, std::uint64_t request, bool by_pointer) {
    if (csv_ && csv_->form() == OpCsv::Form::kOps) csv_->bio(l.op, bio, io_kind_name(kind));
    if (!kept(kLinks)) return;
    Row(table(kLinks))
        .i64(static_cast<std::int64_t>(l.op))
        .i64(static_cast<std::int64_t>(bio))
        .i64_if(request != 0, static_cast<std::int64_t>(request))
        .dict(rules_name(l.rules))
        .dict_or_absent(request == 0 ? 0 : word(matches_[by_pointer], by_pointer ? "pointer" : "sector"))
        .dict(confidence_name(l.rules, l.ambiguous, l.doubtful))
        .u64_if(l.bytes != 0, l.bytes)
        .flag(l.shared)
        .flag(l.ambiguous);
}

void Emitter::deferred(const DeferredRow &d, const Bio &b, const BioLink &link, const std::string &file) {
    if (!kept(kDeferred)) return;
    Row row(table(kDeferred));
    row.i64(static_cast<std::int64_t>(d.op)).i64(static_cast<std::int64_t>(b.id));
    row.i64_if(b.request != 0, static_cast<std::int64_t>(b.request)).dict(strings_.intern(file)).u64(d.bytes);
    row.i64(d.written_ns).time(b.queue_ns).time(link.issue_ns);
    row.time(link.complete_ns != kNoTime ? link.complete_ns : b.complete_ns)
        .i32_if(b.tid >= 0, b.tid)
        .dict_or_absent(b.comm);
    row.dict(rules_name(rule::kPage))
        .dict(confidence_name(rule::kPage, d.ambiguous, d.doubtful))
        .flag(d.shared)
        .flag(d.ambiguous);
}

void Emitter::batch(const Batch &b) {
    if (!kept(kBatches)) return;
    Row(table(kBatches))
        .i64(static_cast<std::int64_t>(b.serial))
        .dict(b.space)
        .i32(static_cast<std::int32_t>(b.tid))
        .i64(b.begin_ns)
        .time(b.end_ns)
        .u32(b.members)
        .u32(static_cast<std::uint32_t>(b.requests.size()))
        .u32_if(b.declared >= 0, static_cast<std::uint32_t>(b.declared));
}

void Emitter::loss(std::string_view name, std::string_view severity, std::string_view origin, std::uint64_t count) {
    if (!kept(kLosses)) return;
    Row(table(kLosses))
        .dict(strings_.intern(name))
        .dict(strings_.intern(severity))
        .dict(strings_.intern(origin))
        .u64(count);
}

void Emitter::fate(std::uint32_t event_name, std::string_view fate, std::uint64_t count) {
    if (!kept(kFates)) return;
    Row(table(kFates)).dict(event_name).dict(strings_.intern(fate)).u64(count);
}

void Emitter::discarded(std::string_view stream, std::int64_t begin_ns, std::int64_t end_ns, std::uint64_t count,
                        bool packets) {
    if (!kept(kDiscarded)) return;
    Row(table(kDiscarded)).text(stream).time(begin_ns).time(end_ns).u64_if(count != 0, count).flag(packets);
}

}  // namespace opline
