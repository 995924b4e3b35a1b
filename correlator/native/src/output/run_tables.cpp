// SPDX-License-Identifier: MIT
#include "output/run_tables.hpp"

#include <algorithm>
#include <stdexcept>

#include "block/steps.hpp"
#include "identity/threads.hpp"
#include "output/row.hpp"

namespace opline {

using namespace columns;

namespace {

// Whose thread or device a stage is of: pool id; 0: of a run of one host.
std::uint32_t host_of(const Hosts &hosts, const SettledOp &settled, const StageCut &stage) {
    if (!hosts.several()) return 0;
    if (stage.tid < 0 && stage.request != 0)
        for (const auto &r : settled.found.requests)
            if (r.request == stage.request) return hosts.of_device(r.dev);
    return hosts.of_thread(stage.tid, settled.op.host);
}

}  // namespace

RunTables::RunTables(StringPool &strings, const std::vector<std::string> &key_space_names, const Hosts &hosts)
    : strings_(strings), hosts_(hosts), wait_words_(strings) {
    evidence_ = {strings.intern("begin"), 0, strings.intern("thread"), strings.intern("batch"),
                 strings.intern("completion")};
    states_ = {strings.intern("on_cpu"), strings.intern("runnable"), strings.intern("blocked_io"),
               strings.intern("blocked")};
    for (const auto &name : key_space_names) key_evidence_.push_back(strings.intern("key:" + name));
    for (const auto &table : columns::kTables) {
        std::vector<Column> made;
        for (const auto &c : table.columns) made.emplace_back(c.name, c.type);
        tables_.emplace_back(table.name, std::move(made));
    }
    kept_.assign(tables_.size(), 1);
}

void RunTables::keep(const std::vector<std::string> &names) {
    kept_.assign(tables_.size(), 0);
    with_sched_ = false;
    for (const auto &name : names) {
        if (name == "sched") {
            with_sched_ = true;
            continue;
        }
        auto it = std::find_if(tables_.begin(), tables_.end(), [&](const Table &t) { return t.name == name; });
        if (it == tables_.end()) throw std::runtime_error("There is no table " + name);
        kept_[static_cast<std::size_t>(it - tables_.begin())] = 1;
    }
}

bool RunTables::keeps_states() const { return (kept(kStages) && with_sched_) || kept(kStates) || kept(kWaits); }
bool RunTables::keeps_waits() const { return kept(kWaits); }
bool RunTables::keeps_state_parts() const { return kept(kStates); }
bool RunTables::keeps_ops() const {
    return kept(kOps) || kept(kTransitions) || kept(kStages) || kept(kStates) || kept(kWaits) || kept(kMembers);
}

std::size_t RunTables::pending_rows() const {
    std::size_t most = 0;
    for (const auto &t : tables_) most = std::max(most, t.rows());
    return most;
}

bool RunTables::keeps_transitions() const { return kept(kTransitions); }
bool RunTables::keeps_requests() const { return kept(kRequests) || kept(kBios); }

std::uint32_t RunTables::evidence_name(const TransitionKind &t) const {
    return t.evidence == Evidence::kKey ? key_evidence_[t.key_space] : evidence_[static_cast<std::size_t>(t.evidence)];
}

void RunTables::op(const SettledOp &settled) {
    if (kept(kTransitions)) transitions(settled);
    if (kept(kStages)) stages(settled);
    if (kept(kStates)) states(settled);
    if (kept(kWaits)) put_waits(table(kWaits), wait_words_, settled);
    if (kept(kMembers)) members(settled.op);
    if (kept(kOps)) op_row(settled);
}

void RunTables::members(const Op &op) {
    namespace members = columns::members;
    for (const auto &m : op.batches)
        Row(table(kMembers))
            .i64(members::batch_id, static_cast<std::int64_t>(m.batch->serial))
            .i64(members::op_id, static_cast<std::int64_t>(op.serial))
            .i64(members::joined_ns, op.transitions[m.joined_order].ts_ns);
}

void RunTables::transitions(const SettledOp &settled) {
    namespace transitions = columns::transitions;
    const auto &placed = settled.found.transitions;
    if (placed.empty()) return;
    const auto of = [&](std::size_t i) -> const Transition & { return placed[i].t(); };
    RowsAtOnce rows(table(kTransitions), placed.size());
    rows.put(transitions::op_id, [&](std::size_t) { return settled.op.serial; })
        .put(transitions::seq, [](std::size_t i) { return i; })
        .put(transitions::ts_ns, [&](std::size_t i) { return of(i).ts_ns; })
        .put(transitions::point, [&](std::size_t i) { return placed[i].label; })
        .dict_or_absent(transitions::event, [&](std::size_t i) { return of(i).event; });
    rows.put_if(
            transitions::tid, [&](std::size_t i) { return of(i).tid >= 0; },
            [&](std::size_t i) { return display_number(of(i).tid); })
        .put_if(
            transitions::pid, [&](std::size_t i) { return of(i).pid >= 0; },
            [&](std::size_t i) { return display_number(of(i).pid); })
        .put_if(
            transitions::cpu, [&](std::size_t i) { return of(i).cpu != kNoCpu; },
            [&](std::size_t i) { return of(i).cpu; });
    rows.dict_or_absent(
            transitions::host,
            [&](std::size_t i) { return hosts_.several() ? hosts_.of_thread(of(i).tid, settled.op.host) : 0; })
        .dict_or_absent(transitions::comm, [&](std::size_t i) { return of(i).comm; })
        .put(transitions::evidence, [&](std::size_t i) { return evidence_name(of(i)); })
        .put(transitions::late, [&](std::size_t i) { return placed[i].late; })
        .put(transitions::aside, [&](std::size_t i) { return placed[i].aside; });
    rows.put_if(
            transitions::batch_id, [&](std::size_t i) { return of(i).batch >= 0; },
            [&](std::size_t i) { return of(i).batch; })
        .put_if(
            transitions::child, [&](std::size_t i) { return placed[i].child != 0; },
            [&](std::size_t i) { return placed[i].child; });
}

void RunTables::stages(const SettledOp &settled) {
    namespace stages = columns::stages;
    const auto &cuts = settled.found.stages;
    if (cuts.empty()) return;
    const auto &splits = settled.found.states;
    RowsAtOnce rows(table(kStages), cuts.size());
    rows.put(stages::op_id, [&](std::size_t) { return settled.op.serial; })
        .put(stages::seq, [](std::size_t i) { return i; })
        .put(stages::stage, [&](std::size_t i) { return cuts[i].stage; })
        .put(stages::kind, [&](std::size_t i) { return cuts[i].kind; })
        .put(stages::from_point, [&](std::size_t i) { return cuts[i].from; })
        .put(stages::to_point, [&](std::size_t i) { return cuts[i].to; });
    rows.put(stages::begin_ns, [&](std::size_t i) { return cuts[i].begin_ns; })
        .put(stages::duration_ns, [&](std::size_t i) { return cuts[i].duration_ns; })
        .put_if(
            stages::tid, [&](std::size_t i) { return cuts[i].tid >= 0; },
            [&](std::size_t i) { return display_number(cuts[i].tid); })
        .dict_or_absent(stages::host, [&](std::size_t i) { return host_of(hosts_, settled, cuts[i]); })
        .put_if(
            stages::request_id, [&](std::size_t i) { return cuts[i].request != 0; },
            [&](std::size_t i) { return cuts[i].request; });
    if (splits.empty()) {
        rows.absent(stages::states_tid, stages::on_cpu_ns, stages::runnable_ns, stages::blocked_io_ns,
                    stages::blocked_ns, stages::woken_by_tid, stages::woken_by_comm);
        return;
    }
    const auto known = [&](std::size_t i) { return splits[i].known; };
    rows.put_if(stages::states_tid, known, [&](std::size_t i) { return display_number(splits[i].tid); })
        .put_if(stages::on_cpu_ns, known, [&](std::size_t i) { return splits[i].on_cpu_ns; })
        .put_if(stages::runnable_ns, known, [&](std::size_t i) { return splits[i].runnable_ns; })
        .put_if(stages::blocked_io_ns, known, [&](std::size_t i) { return splits[i].blocked_io_ns; })
        .put_if(stages::blocked_ns, known, [&](std::size_t i) { return splits[i].blocked_ns; });
    rows.put_if(
            stages::woken_by_tid, [&](std::size_t i) { return splits[i].woken_by_tid >= 0; },
            [&](std::size_t i) { return display_number(splits[i].woken_by_tid); })
        .dict_or_absent(stages::woken_by_comm, [&](std::size_t i) { return splits[i].woken_by_comm; });
}

void RunTables::states(const SettledOp &settled) {
    namespace states = columns::states;
    for (const auto &p : settled.found.state_parts) {
        Row row(table(kStates));
        row.i64(states::op_id, static_cast<std::int64_t>(settled.op.serial))
            .u32(states::seq, p.stage)
            .i64(states::tid, display_number(settled.found.states[p.stage].tid))
            .dict(states::state, states_[static_cast<std::size_t>(p.state)]);
        row.i64(states::begin_ns, p.begin_ns)
            .i64(states::duration_ns, p.end_ns - p.begin_ns)
            .i64_if(states::woken_by_tid, p.woken_by_tid >= 0, display_number(p.woken_by_tid))
            .dict_or_absent(states::woken_by_comm, p.woken_by_comm);
    }
}

void RunTables::op_row(const SettledOp &settled) {
    const Op &op = settled.op;
    const Attribution &found = settled.found;
    const bool ended = settled.complete;
    const RequestCut *request = found.first_request();
    Row row(table(kOps));
    row.i64(ops::op_id, static_cast<std::int64_t>(op.serial))
        .dict_or_absent(ops::class_, op.op_class)
        .text_or_absent(ops::object, op.object)
        .text_or_absent(ops::key, op.key_text);
    row.dict_or_absent(ops::host, op.host)
        .i32_if(ops::pid, op.pid >= 0, display_number(op.pid))
        .dict_or_absent(ops::comm, found.first_comm)
        .dict_or_absent(ops::program, settled.program)
        .dict_or_absent(ops::cgroup, op.cgroup)
        .flag_if(ops::population, settled.has_population, op.program_run != 0)
        .i64_if(ops::begin_tid, found.first_tid >= 0, display_number(found.first_tid));
    row.i64_if(ops::end_tid, ended && found.end_tid >= 0, display_number(found.end_tid));
    row.i64(ops::begin_ns, op.begin_ns)
        .i64_if(ops::end_ns, ended, op.end_ns)
        .i64_if(ops::latency_ns, ended, ended ? op.end_ns - op.begin_ns : 0)
        .flag(ops::complete, ended);
    row.dict_or_absent(ops::reason, settled.reason)
        .flag(ops::tainted, settled.tainted)
        .flag(ops::unsplit, settled.unsplit)
        .i64_if(ops::offset_bytes, op.has_offset, op.offset_bytes);
    row.i64_if(ops::length_bytes, op.has_length, op.length_bytes)
        .u32(ops::transition_count, found.passed)
        .u32(ops::late_count, found.late);
    row.u32(ops::request_count, static_cast<std::uint32_t>(found.requests.size()))
        .u32(ops::batch_count, static_cast<std::uint32_t>(op.batches.size()))
        .u32_if(ops::dev, request != nullptr, request ? request->dev : 0);
    row.u64_if(ops::sector, request && request->sector != kNoSector, request ? request->sector : 0)
        .dict_or_absent(ops::no_request, settled.no_request);
    row.i64_if(ops::unattributed_ns, ended, found.unattributed_ns).i64_if(ops::unknown_ns, ended, found.unknown_ns);
    for (std::size_t i = 0; i < kOpAttributes.size(); ++i)
        row.time(kOfAttributes[i], found.attributes.*kOpAttributes[i]);
}

void RunTables::request(const Request &r, const Flush *flush, const Served &served, bool has_population) {
    if (!kept(kRequests)) return;
    const bool done = r.complete_ns != kNoTime;
    Row row(table(kRequests));
    row.i64(requests::request_id, static_cast<std::int64_t>(r.id))
        .u32(requests::dev, r.dev)
        .dict_or_absent(requests::host, hosts_.of_device(r.dev))
        .u64_if(requests::sector, r.sector != kNoSector, r.sector)
        .u32(requests::nr_sectors, r.nr_sectors);
    row.dict(requests::kind, words_.kind(r.kind)).dict(requests::rwbs, words_.rwbs(r.rwbs));
    const auto issue_ns = flush ? flush->issue_ns : r.issue_ns;
    for (std::size_t n = 0; n < kRequestSteps.size(); ++n) {
        if (n == kStepD) row.time(requests::first_issue_ns, flush ? issue_ns : r.first_issue_ns);
        row.time(kOfSteps[n], n == kStepD ? issue_ns : r.*kRequestSteps[n].of_request);
    }
    row.i64_if(requests::q2c_ns, done && r.queue_ns != kNoTime,
               r.complete_ns - (done && r.queue_ns != kNoTime ? r.queue_ns : r.complete_ns));
    row.i64_if(requests::d2c_ns, done && issue_ns != kNoTime,
               r.complete_ns - (done && issue_ns != kNoTime ? issue_ns : r.complete_ns));
    row.i32_if(requests::queue_tid, r.queue_tid >= 0, display_number(r.queue_tid))
        .dict_or_absent(requests::queue_comm, r.queue_comm)
        .i32_if(requests::issue_tid, r.issue_tid >= 0, display_number(r.issue_tid));
    row.dict_or_absent(requests::issue_comm, r.issue_comm)
        .u32_if(requests::queue_cpu, r.queue_cpu != kNoCpu, r.queue_cpu)
        .u32_if(requests::issue_cpu, r.issue_cpu != kNoCpu, r.issue_cpu);
    row.u32_if(requests::complete_cpu, r.complete_cpu != kNoCpu, r.complete_cpu).i32_if(requests::error, done, r.error);
    row.u32(requests::bio_count, static_cast<std::uint32_t>(r.bios.size()))
        .u32(requests::merge_count, r.merges)
        .u32(requests::requeue_count, r.requeues);
    row.u32_if(requests::in_flight, r.first_issue_ns != kNoTime && r.in_flight_known, r.in_flight)
        .u32(requests::op_count, served.ops);
    row.i64_if(requests::op_id, served.only != 0,
               static_cast<std::int64_t>(served.only == 0 ? 0 : serial_of(served.only)))
        .flag(requests::ambiguous, r.ambiguous)
        .flag_if(requests::population, has_population, served.of_population);
    row.dict_or_absent(requests::cgroup, r.cgroup);
    constexpr std::array<std::string_view, 4> outcomes = {"absorbed", "reused", "completed", "open"};
    const std::size_t outcome = r.absorbed_by != 0 ? 0 : r.reused ? 1 : done ? 2 : 3;
    row.dict(requests::outcome, words_.outcome(outcome, outcomes[outcome]));
    row.i64_if(requests::flushed_by, flush != nullptr, flush ? static_cast<std::int64_t>(flush->request) : 0);
    row.time(requests::preflush_ns, r.preflush_ns).time(requests::end_ns, std::max(r.end_ns, r.complete_ns));
}

void RunTables::bio(const Bio &b, const BioLink *link, bool has_population, bool of_population) {
    if (!kept(kBios)) return;
    auto op_of = [](std::uint64_t ref) { return static_cast<std::int64_t>(ref == 0 ? 0 : serial_of(ref)); };
    const std::uint64_t chosen = link ? link->chosen : b.owner.op;
    Row row(table(kBios));
    row.i64(bios::bio_id, static_cast<std::int64_t>(b.id))
        .i64_if(bios::request_id, b.request != 0, static_cast<std::int64_t>(b.request))
        .u32(bios::dev, b.dev);
    row.u64_if(bios::sector, b.sector != kNoSector, b.sector)
        .u32(bios::nr_sectors, b.nr_sectors)
        .dict(bios::kind, words_.kind(b.kind))
        .time(bios::queue_ns, b.queue_ns)
        .time(bios::getrq_ns, b.getrq_ns)
        .time(bios::merge_ns, b.merge_ns);
    row.i32_if(bios::tid, b.tid >= 0, display_number(b.tid))
        .i32_if(bios::pid, b.pid >= 0, display_number(b.pid))
        .dict_or_absent(bios::comm, b.comm)
        .i64_if(bios::parent_id, b.parent != 0, static_cast<std::int64_t>(b.parent));
    row.i64_if(bios::split_from_id, b.split_from != 0, static_cast<std::int64_t>(b.split_from))
        .i64_if(bios::op_id, chosen != 0, op_of(chosen));
    row.i64_if(bios::op_by_thread, link && link->by_thread != 0, op_of(link ? link->by_thread : 0));
    row.i64_if(bios::op_by_sector, link && link->by_sector != 0, op_of(link ? link->by_sector : 0));
    row.i64_if(bios::op_by_extent, link && link->by_extent != 0, op_of(link ? link->by_extent : 0));
    row.u32_if(bios::sector_candidates, link && !link->inherited, link ? link->candidates : 0);
    row.flag_if(bios::population, has_population, of_population).dict_or_absent(bios::cgroup, b.cgroup);
    row.i64_if(bios::batch_id, b.owner.batch != 0, static_cast<std::int64_t>(b.owner.batch) - 1);
}

void RunTables::link(const LinkRow &l, const BatchBio &bio) {
    if (!kept(kLinks)) return;
    const bool has_request = bio.request != 0;
    Row(table(kLinks))
        .i64(links::op_id, static_cast<std::int64_t>(l.op))
        .i64(links::bio_id, static_cast<std::int64_t>(bio.bio))
        .i64_if(links::request_id, has_request, static_cast<std::int64_t>(bio.request))
        .dict(links::evidence, words_.rules(l.rules))
        .dict_or_absent(links::request_evidence, has_request ? words_.match(bio.by_pointer) : 0)
        .dict(links::confidence, words_.confidence(l.rules, l.ambiguous, l.doubtful, l.completion_by))
        .u64_if(links::bytes, l.bytes != 0, l.bytes)
        .flag(links::shared, l.shared)
        .flag(links::ambiguous, l.ambiguous);
}

void RunTables::deferred(const DeferredRow &d, const Bio &b, const BioLink &link, const std::string &file) {
    if (!kept(kDeferred)) return;
    Row row(table(kDeferred));
    row.i64(deferred::op_id, static_cast<std::int64_t>(d.op)).i64(deferred::bio_id, static_cast<std::int64_t>(b.id));
    row.i64_if(deferred::request_id, b.request != 0, static_cast<std::int64_t>(b.request))
        .dict(deferred::file, strings_.intern(file))
        .u64(deferred::bytes, d.bytes);
    row.i64(deferred::written_ns, d.written_ns)
        .time(deferred::queue_ns, b.queue_ns)
        .time(deferred::issue_ns, link.issue_ns);
    row.time(deferred::complete_ns, link.complete_ns != kNoTime ? link.complete_ns : b.complete_ns)
        .i32_if(deferred::tid, b.tid >= 0, display_number(b.tid))
        .dict_or_absent(deferred::comm, b.comm);
    row.dict(deferred::evidence, words_.rules(rule::kPage))
        .dict(deferred::confidence, words_.confidence(rule::kPage, d.ambiguous, d.doubtful, CompletionBy::kMatch))
        .flag(deferred::shared, d.shared)
        .flag(deferred::ambiguous, d.ambiguous);
}

void RunTables::batch(const Batch &b) {
    if (!kept(kBatches)) return;
    Row(table(kBatches))
        .i64(batches::batch_id, static_cast<std::int64_t>(b.serial))
        .dict(batches::space, b.space)
        .i32(batches::tid, static_cast<std::int32_t>(display_number(b.tid)))
        .i64(batches::begin_ns, b.begin_ns)
        .time(batches::end_ns, b.end_ns)
        .u32(batches::member_count, b.members)
        .u32(batches::request_count, static_cast<std::uint32_t>(b.requests.size()))
        .u32_if(batches::declared_count, b.declared >= 0, static_cast<std::uint32_t>(b.declared));
}

void RunTables::message(const Transition &t, std::uint32_t host, MessageDo does, const Key &identity) {
    if (!kept(kMessages)) return;
    const bool send = does == MessageDo::kSend;
    Row(table(kMessages))
        .i64(messages::ts_ns, t.ts_ns)
        .dict(messages::point, t.point)
        .dict(messages::direction, words_.message(send))
        .u64(messages::identity, identity.lo)
        .dict_or_absent(messages::host, host)
        .i32_if(messages::pid, t.pid >= 0, display_number(t.pid))
        .i64_if(messages::tid, t.tid >= 0, display_number(t.tid));
}

void RunTables::tcp(const TcpCall &call) {
    if (kept(kTcp)) tcp_rows_.put(table(kTcp), call, words_.message(call.send));
}

void RunTables::loss(std::string_view name, std::string_view severity, std::string_view origin, std::uint64_t count) {
    if (!kept(kLosses)) return;
    Row(table(kLosses))
        .dict(losses::loss, strings_.intern(name))
        .dict(losses::severity, strings_.intern(severity))
        .dict(losses::origin, strings_.intern(origin))
        .u64(losses::count, count);
}

void RunTables::fate(std::uint32_t event_name, std::string_view fate, std::uint64_t count) {
    if (!kept(kFates)) return;
    Row(table(kFates)).dict(fates::event, event_name).dict(fates::fate, strings_.intern(fate)).u64(fates::count, count);
}

void RunTables::discarded(std::string_view stream, std::int64_t begin_ns, std::int64_t end_ns, std::uint64_t count,
                          bool packets) {
    if (!kept(kDiscarded)) return;
    Row(table(kDiscarded))
        .text(discarded::stream, stream)
        .time(discarded::begin_ns, begin_ns)
        .time(discarded::end_ns, end_ns)
        .u64_if(discarded::count, count != 0, count)
        .flag(discarded::packets, packets);
}

void RunTables::missed(std::optional<std::uint32_t> dev, std::int64_t begin_ns, std::int64_t end_ns,
                       std::uint64_t count) {
    std::string what = "events missing";
    if (dev) what += " of " + std::to_string(*dev >> 20) + ":" + std::to_string(*dev & 0xfffff);
    discarded(what, begin_ns, end_ns, count, false);
}

}  // namespace opline
