// SPDX-License-Identifier: MIT
#include "core_impl.hpp"

#include <algorithm>

namespace opline {
namespace {

constexpr std::size_t kChunkRows = 1u << 16;

std::string stream_name(const StreamDecl &s) {
    return s.channel.empty() ? s.path : s.channel + "_" + std::to_string(s.instance);
}

}  // namespace

Core::Core(const std::string &plan_json) : impl_(std::make_unique<Impl>(plan_json)) {}
Core::~Core() = default;

ClassPlan Core::add_class(const ClassDecl &decl) {
    BoundClass bound = bind_class(decl, impl_->plan, impl_->strings, {impl_->emitter.keeps_states(), impl_->emitter.keeps_transitions()});
    bound.plan.id = static_cast<std::uint32_t>(impl_->classes.size());
    if (bound.kind == ClassKind::kBlock || bound.kind == ClassKind::kPlug) impl_->has_block_classes = true;
    impl_->survey.add_class(bound, impl_->name_slot(bound), bound.plan);
    impl_->classes.push_back(std::make_unique<BoundClass>(std::move(bound)));
    impl_->stitcher.add_class(*impl_->classes.back());
    return impl_->classes.back()->plan;
}

std::uint32_t Core::add_stream(const StreamDecl &decl) {
    impl_->streams.push_back(decl);
    impl_->stream_hosts.push_back(impl_->strings.intern(decl.host));
    impl_->survey.add_stream();
    impl_->stitcher.add_stream();
    return static_cast<std::uint32_t>(impl_->streams.size() - 1);
}

void Core::event(const Event &ev) {
    Event surveyed = ev;
    Lead lead;
    survey(&surveyed, &surveyed + 1);
    const Lead *const past_leads = find_leads(&surveyed, &surveyed + 1, &lead);
    events({&surveyed, &surveyed + 1, &lead, past_leads});
}

void Core::survey(Event *first, Event *past) { impl_->survey.run(first, past); }

Lead *Core::find_leads(const Event *first, const Event *past, Lead *out) { return impl_->survey.find_leads(first, past, impl_->stream_hosts, out); }

void Core::events(const Events &all) {
    Impl &m = *impl_;
    if (m.events == 0) {
        m.first_ns = all.first->ts_ns;
        m.rank_streams();
    }
    m.events += static_cast<std::uint64_t>(all.past - all.first);
    m.take(all);
}

void Core::expect_help() {
    if (impl_->statistics) impl_->statistics->share();
}

bool Core::help() { return impl_->statistics && impl_->statistics->help(); }

void Core::discarded(std::uint32_t stream, std::int64_t begin_ns, std::int64_t end_ns, std::uint64_t count,
                     bool packets) {
    Impl &m = *impl_;
    m.stitcher.advance(m.last_ns, stream);
    m.stitcher.events_lost();
    if (m.streams[stream].domain == Domain::kKernel) m.sched.lost(end_ns);
    if (begin_ns != kNoTime && end_ns != kNoTime) m.linker.discarded(begin_ns, end_ns);
    if (packets) m.discarded_packets += count;
    else m.discarded_events += count;
    if (count == 0) ++m.discarded_unknown;
    m.emitter.discarded(stream_name(m.streams[stream]), begin_ns, end_ns, count, packets);
}

void Core::damaged(std::uint32_t stream, std::int64_t from_ns, std::string_view why) {
    Impl &m = *impl_;
    m.stitcher.advance(m.last_ns, stream);
    if (m.streams[stream].domain == Domain::kKernel) m.sched.lost_from(from_ns);
    m.linker.discarded(from_ns, std::numeric_limits<std::int64_t>::max());
    m.damages.push_back({{"stream", stream_name(m.streams[stream])}, {"from_ns", nullptr}, {"why", std::string(why)}});
    if (from_ns != kNoTime) m.damages.back()["from_ns"] = from_ns;
}

bool Core::finish() {
    Impl &m = *impl_;
    if (m.finished) return true;
    if (!m.finishing) {
        m.finishing = true;
        m.stitcher.ops().ahead().now(std::numeric_limits<std::int64_t>::max(), 0);
        // First the requests, so that what completed is known to the ops that are still to be settled.
        m.block.finish();
        m.stitcher.last_event(m.last_ns);
    }
    while (m.stitcher.settle_next_ended())
        if (take_ready()) return false;
    m.stitcher.settle_open();
    for (const auto &[name, counts] : m.fates())
        for (std::size_t f = 0; f < counts.size(); ++f)
            if (counts[f] != 0) m.emitter.fate(m.strings.intern(name), kFateNames[f], counts[f]);
    return m.finished = true;
}

void Core::keep_tables(const std::vector<std::string> &names) {
    impl_->emitter.keep(names);
    if (!impl_->emitter.keeps_transitions()) impl_->stitcher.ops().shapes().forget_details();
    if (!impl_->emitter.keeps_ops()) impl_->stitcher.skip_texts();
    impl_->names_requests = impl_->emitter.keeps_requests();
}
void Core::write_csv(OpCsv &csv, bool all) {
    keep_tables({});
    impl_->emitter.feed(csv, all);
    if (csv.form() == OpCsv::Form::kOps) impl_->stitcher.keep_objects();
}
void Core::attribute_each() { impl_->stitcher.take_no_short_way(); }
std::size_t Core::shapes() const { return impl_->stitcher.ops().shapes().size(); }
void Core::keep_statistics(bool tainted) {
    impl_->statistics.emplace(tainted, impl_->stitcher.ops().frozen_ops());
}
bool Core::take_ready() const { return impl_->finished || impl_->emitter.pending_rows() >= kChunkRows; }
std::vector<Table> &Core::tables() { return impl_->emitter.tables(); }
const StringPool &Core::strings() const { return impl_->strings; }
void Core::loss(std::string_view name, std::string_view severity, std::string_view origin, std::uint64_t count) {
    impl_->emitter.loss(name, severity, origin, count);
}
std::vector<std::string> Core::take_new_strings() { return impl_->strings.take_new(); }
std::uint64_t Core::events_seen() const { return impl_->events + impl_->stitcher.alongs(); }

}  // namespace opline
