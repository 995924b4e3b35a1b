// SPDX-License-Identifier: MIT
// What the core says of a trace in JSON: counts, losses, fates, statistics.
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "base/json_text.hpp"
#include "core/fates.hpp"
#include "core/impl.hpp"

namespace opline {

namespace {

using nlohmann::json;

json hops_of(const LinkCounts &l, const BlockCounts &b) {
    auto hop = [](const HopAgreement &h) {
        return json{{"agree", h.agree},
                    {"differ", h.differ},
                    {"pointer_only", h.pointer_only},
                    {"sector_only", h.sector_only},
                    {"neither", h.neither},
                    {"ambiguous", h.ambiguous}};
    };
    return {{"op_to_bio",
             {{"agree", l.agree},
              {"differ", l.differ},
              {"thread_only", l.thread_only},
              {"sector_only", l.sector_only},
              {"neither", l.neither},
              {"ambiguous", l.ambiguous},
              {"batch", l.batch},
              {"page", l.page},
              {"extents", l.extents}}},
            {"bio_to_request", hop(b.bio_to_request)},
            {"request_to_issue", hop(b.request_to_issue)},
            {"request_to_complete", hop(b.request_to_complete)}};
}

// Unseen completions are no loss of data, unless they are more than 0.1 % of all completions.
bool too_many_unseen(const BlockCounts &b) {
    return b.completions_unseen * 1000 > b.completions + b.completions_unseen;
}

// Impl: Core::Impl, which has no name here.
template <class Impl>
json losses_of(const Impl &m) {
    const ShortfallCounts &lost = m.shortfall.counts();
    const SettledCounts &ops = m.settler.counts();
    const BlockCounts b = m.blocks.counts();
    const LinkCounts &l = m.linker.counts();
    const StitchCounts &s = m.stitcher.counts();
    return {{"discarded_events", lost.discarded_events},
            {"discarded_packets", lost.discarded_packets},
            {"discarded_unknown_count", lost.discarded_unknown},
            {"collector_lost", lost.collector_lost},
            {"streams_missing", lost.streams_missing},
            {"events_missing", lost.events_missing},
            {"completions_unseen", too_many_unseen(b) ? 0 : b.completions_unseen},
            {"completions_missing", too_many_unseen(b) ? b.completions_unseen : 0},
            {"damaged_streams", lost.damages.size()},
            {"events_out_of_order", m.common.now.out_of_order},
            {"threads_unknown", m.blocks.expected() ? m.common.identities.threads.untold_count() : 0},
            {"states_missing", m.states.timelines.missing()},
            {"partition_violations", ops.partition_violations},
            {"interval_violations", b.interval_violations},
            {"incomplete_ops", ops.incomplete},
            {"tainted_ops", ops.tainted},
            {"unsplit_ops", ops.unsplit},
            {"late_transitions", ops.late_transitions},
            {"key_conflicts", s.key_conflicts},
            {"ends_without_op", s.ends_without_op},
            {"evicted_ops", s.evicted_ops},
            {"evicted_page_owners", m.linker.evicted_pages()},
            {"evicted_unsynced_writes", m.linker.evicted_writes()},
            {"batches_left_open", s.batches_left_open},
            {"reaps_unseen", s.reaps_unseen},
            {"ends_untold", s.ends_untold},
            {"order_mismatches", s.order_mismatches},
            {"ambiguous_halves", s.ambiguous_halves},
            {"evicted_facts", s.evicted_facts},
            {"batch_counts_differ", s.batch_counts_differ},
            {"batches_unseen", s.batches_unseen},
            {"unmatched_getrq", b.unmatched_getrq},
            {"unmatched_merge", b.unmatched_merge},
            {"unmatched_issue", b.unmatched_issue},
            {"unmatched_complete", b.unmatched_complete},
            {"unmatched_requeue", b.unmatched_requeue},
            {"second_completions", b.second_completions},
            {"requests_incomplete", b.incomplete_at_end},
            {"pointer_reuse", b.pointer_reuse},
            {"evicted_block_state", b.evicted},
            {"requests_failed", b.failed},
            {"ops_failed", ops.failed},
            {"unmatched_insert", b.unmatched_insert},
            {"unmatched_split", b.unmatched_split},
            {"unmatched_bio_complete", b.unmatched_bio_complete},
            {"unmatched_rq_bio", b.unmatched_rq_bio},
            {"bios_lost", b.lost_bios},
            {"requests_given_up", b.presumed_lost},
            {"devices_incomplete", b.incomplete_devices},
            {"queues_assumed", b.queues_assumed},
            {"links_refused", l.refused},
            {"bios_elsewhere", l.elsewhere},
            {"bios_of_other_processes", l.other_process},
            {"process_violations", l.process_violations},
            {"request_size_differs", b.size_differs}};
}

json damaged_of(const std::vector<Damage> &damages) {
    json out = json::array();
    for (const auto &d : damages) {
        json from = nullptr;
        if (d.from_ns != kNoTime) from = d.from_ns;
        out.push_back({{"stream", d.stream}, {"from_ns", from}, {"why", d.why}});
    }
    return out;
}

template <class Impl>
void add_fates(const Impl &m, json &out) {
    std::map<std::string, std::uint64_t> orphans;
    std::map<std::string, std::map<std::string, std::uint64_t>> became;
    for (const auto &[name, counts] : fates(m.classes))
        for (std::size_t f = 0; f < counts.size(); ++f) {
            if (counts[f] == 0) continue;
            const std::string fate(kFateNames[f]);
            became[name][fate] = counts[f];
            if (f >= static_cast<std::size_t>(Fate::kOrphanNoOp)) orphans[fate] += counts[f];
        }
    out["orphans"] = orphans;
    out["fates"] = became;
}

// How often each point matched, and how often each use of a key found its op.
template <class Impl>
void add_points(const Impl &m, json &out) {
    std::map<std::uint32_t, std::pair<std::uint64_t, std::uint64_t>> points;
    std::map<std::tuple<std::uint32_t, std::uint32_t>, std::pair<std::uint64_t, std::uint64_t>> keys;
    for (const auto &c : m.classes)
        for (const auto &p : c->points) {
            points[p.spec].first += p.seen;
            points[p.spec].second += p.transitions;
            for (const auto *uses : {&p.find, &p.meet, &p.sole})
                for (const auto &k : *uses) {
                    auto &counts = keys[{p.spec, k.space}];
                    counts.first += k.found;
                    counts.second += k.missed;
                }
        }
    out["points"] = json::array();
    for (std::uint32_t i = 0; i < m.common.plan.points.size(); ++i)
        out["points"].push_back({{"name", m.common.plan.points[i].name},
                                 {"event", m.common.plan.points[i].event},
                                 {"seen", points[i].first},
                                 {"transitions", points[i].second}});
    out["keys"] = json::array();
    for (const auto &[where, counts] : keys)
        out["keys"].push_back({{"space", m.common.plan.key_spaces[std::get<1>(where)].name},
                               {"point", m.common.plan.points[std::get<0>(where)].name},
                               {"found", counts.first},
                               {"missed", counts.second}});
}

// Absent if the recording does not tell its processes.
template <class Impl>
void add_population(const Impl &m, json &out) {
    if (!m.population.known()) return;
    json others = json::array(), programs = json::array();
    m.population.each_other([&](std::int32_t pid, std::uint32_t dev, const OtherProgram &found) {
        others.push_back({{"pid", display_number(pid)},
                          {"dev", dev},
                          {"comm", m.common.strings.at(found.comm)},
                          {"ops", found.ops},
                          {"bios", found.bios}});
    });
    std::set<std::string> named;
    for (const auto &run : m.population.runs())
        if (run.comm != 0 && named.insert(std::string(m.common.strings.at(run.comm))).second)
            programs.push_back(m.common.strings.at(run.comm));
    out["population"] = {{"ops", m.members.own.ops},
                         {"incomplete_ops", m.members.own.incomplete},
                         {"requests", m.members.own.requests},
                         {"other_ops", m.members.others.ops},
                         {"other_requests", m.members.others.requests},
                         {"idle", m.population.idle(m.common.now.last_ns)},
                         {"saw_block_events", m.block_events > 0},
                         {"programs", programs},
                         {"others", others}};
}

}  // namespace

std::string Core::statistics_json() {
    if (!impl_->out.statistics) throw std::runtime_error("No statistics were kept");
    auto out = impl_->out.statistics->json();
    out["incomplete"] =
        impl_->settler.counts().incomplete - (impl_->members.all_programs ? 0 : impl_->members.others.incomplete);
    const auto &d = impl_->members.deferred;
    out["deferred"] = {{"rows", d.rows}, {"bytes", d.bytes}, {"done", d.done}, {"wait_ns", d.wait_ns}};
    return json_text(std::move(out));
}

std::string Core::summary_json() const {
    const Impl &m = *impl_;
    const SettledCounts &ops = m.settler.counts();
    const StitchCounts &s = m.stitcher.counts();
    json out;
    out["events"] = m.common.now.events;
    out["block_events"] = m.block_events;
    out["first_ns"] = m.common.now.first_ns == kNoTime ? json(nullptr) : json(m.common.now.first_ns);
    out["last_ns"] = m.common.now.last_ns == kNoTime ? json(nullptr) : json(m.common.now.last_ns);
    out["ops"] = {{"complete", ops.complete}, {"incomplete", ops.incomplete},    {"tainted", ops.tainted},
                  {"unsplit", ops.unsplit},   {"without_request", ops.unlinked}, {"by_shape", ops.by_shape}};
    out["joins"] = {{"by_key", s.halves_joined}, {"by_order", s.halves_joined_by_order}};
    out["hops"] = hops_of(m.linker.counts(), m.blocks.counts());
    out["losses"] = losses_of(m);
    out["damaged"] = damaged_of(m.shortfall.counts().damages);
    add_fates(m, out);
    for (const auto &[dev, name] : m.common.device_names) out["devices"][std::to_string(dev)] = name;
    for (const auto &[dev, found] : m.common.hosts().devices())
        out["host_devices"].push_back(
            {{"dev", dev}, {"host", m.common.strings.at(found.host)}, {"own_dev", found.dev}});
    add_points(m, out);
    add_population(m, out);
    return json_text(std::move(out));
}

}  // namespace opline
