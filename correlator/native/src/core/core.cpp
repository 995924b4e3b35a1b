// SPDX-License-Identifier: MIT
#include <algorithm>
#include <limits>

#include "core/fates.hpp"
#include "core/impl.hpp"

namespace opline {
namespace {

constexpr std::size_t kChunkRows = 1u << 16;

}  // namespace

Core::Core(const std::string &plan_json) : Core(parse_plan(plan_json)) {}

Core::Core(Plan plan) : impl_(std::make_unique<Impl>(std::move(plan))) {
    Impl &m = *impl_;
    const Plan &known = m.common.plan;
    if (!known.clock_bounds.empty()) attribute_each();  // the cuts of an op depend on its times
    for (const auto &d : known.devices) m.blocks.here(d.host).know(d.dev, {d.queues, d.fua});
    for (const auto &s : known.stacks) m.states.waits.causes.know(s, m.common.strings);
    for (const auto &l : known.lost) {
        const std::int64_t begin_ns = l.begin_ns.value_or(kNoTime);
        m.shortfall.lost_anywhere(begin_ns, l.end_ns.value_or(std::numeric_limits<std::int64_t>::max()));
        if (!l.end_ns) m.states.lost_from(begin_ns);
    }
}
Core::~Core() = default;

ClassPlan Core::add_class(const ClassDecl &decl) {
    Impl &m = *impl_;
    const RunTables &tables = m.out.tables;
    BoundClass bound = bind_class(decl, m.common.plan, m.common.strings,
                                  {tables.keeps_states(), tables.keeps_transitions(), tables.keeps_requests()});
    bound.plan.id = static_cast<std::uint32_t>(m.classes.size());
    if (bound.kind == ClassKind::kRequest) m.blocks.whole();
    if (bound.kind == ClassKind::kBlock || bound.kind == ClassKind::kPlug || bound.kind == ClassKind::kRequest)
        m.blocks.expect(decl.domain == Domain::kKernel && decl.name.find(':') != std::string::npos);
    if (bound.kind == ClassKind::kOffCpu) m.states.collected();
    if (bound.kind == ClassKind::kSchedWake && bound.sched.wake == Wake::kWaking) m.blocks.expect_wakes();
    if (bound.kind == ClassKind::kProcess && !bound.process.of_all && m.common.plan.tells_processes)
        m.population.told();
    m.thread_names.add_class(bound.comm_slot);
    m.classes.push_back(std::make_unique<BoundClass>(std::move(bound)));
    return m.classes.back()->plan;
}

std::uint32_t Core::add_stream(const StreamDecl &decl) {
    Common &common = impl_->common;
    common.streams.declared.push_back(decl);
    common.streams.hosts.push_back(common.strings.intern(decl.host));
    impl_->shortfall.add_stream(decl);
    common.identities.threads.hosts.set_clock(common.streams.hosts.back(), decl.clock);
    return static_cast<std::uint32_t>(common.streams.hosts.size() - 1);
}

void Core::name_threads(Event *first, Event *past) { impl_->thread_names.number(first, past); }

void Core::events(const Event *first, const Event *past) {
    Impl &m = *impl_;
    if (m.common.now.events == 0) m.common.now.first_ns = first->ts_ns;
    m.common.now.events += static_cast<std::uint64_t>(past - first);
    for (; first != past; ++first) m.take(*first);
}

void Core::gap(const Gap &gap) {
    impl_->stitcher.advance(impl_->common.now.last_ns);
    if (gap.kind == Gap::Kind::kDamage) impl_->shortfall.damaged(gap);
    else impl_->shortfall.discarded(gap);
}

void Core::missing(std::string_view stream, Domain domain, std::int64_t begin_ns, std::int64_t end_ns,
                   std::uint64_t packets) {
    impl_->shortfall.missing(stream, domain, begin_ns, end_ns, packets);
}

void Core::know(const KnownStreams &streams) { impl_->shortfall.know(streams); }

bool Core::finish() {
    Impl &m = *impl_;
    if (m.progress == Impl::Progress::kFinished) return true;
    if (m.progress == Impl::Progress::kReading) {
        m.progress = Impl::Progress::kFinishing;
        m.take_steps(RequestSteps::kNone - 1);
        m.shortfall.last_number();
        // Requests first: ops still to settle need the completed requests.
        m.blocks.each([&m](std::uint32_t host, BlockModel &block) {
            if (!m.common.plan.hosts.empty()) m.common.now.host = host;
            block.finish();
        });
        m.stitcher.last_event(m.common.now.last_ns);
    }
    while (m.stitcher.settling().settle_next_ended())
        if (take_ready()) return false;
    m.stitcher.settling().settle_open();
    m.out.tell_links(m.linker.lost(), [](std::uint64_t) { return true; });
    for (const auto &l : m.common.plan.lost)
        m.out.tables.discarded(l.why, l.begin_ns.value_or(kNoTime), l.end_ns.value_or(kNoTime), 0, false);
    for (const auto &[name, counts] : fates(m.classes))
        for (std::size_t f = 0; f < counts.size(); ++f)
            if (counts[f] != 0) m.out.tables.fate(m.common.strings.intern(name), kFateNames[f], counts[f]);
    m.progress = Impl::Progress::kFinished;
    return true;
}

void Core::keep_tables(const std::vector<std::string> &names) {
    impl_->out.keep_tables(names);
    if (!impl_->out.tables.keeps_transitions()) {
        impl_->stitcher.ops().shapes().forget_details();
        impl_->settler.leave_out_transitions();
    }
    if (!impl_->out.tables.keeps_ops()) impl_->stitcher.skip_texts();
}
void Core::write_csv(OpCsv &csv, bool all) {
    keep_tables({});
    impl_->out.write_csv(csv, all);
    if (csv.form() == OpCsv::Rows::kOps) impl_->stitcher.details().keep_objects();
}
void Core::count_all_programs() { impl_->members.all_programs = true; }
void Core::attribute_each() { impl_->stitcher.ops().shapes().none(); }
std::size_t Core::shapes() const { return impl_->stitcher.ops().shapes().size(); }
void Core::keep_statistics(bool tainted, std::vector<std::string> classes, std::vector<std::string> without) {
    impl_->out.keep_statistics(tainted, std::move(classes), std::move(without));
}
bool Core::take_ready() const {
    return impl_->progress == Impl::Progress::kFinished || impl_->out.tables.pending_rows() >= kChunkRows;
}
std::vector<Table> &Core::tables() { return impl_->out.tables.tables(); }
void Core::show_open() {
    impl_->blocks.each([this](std::uint32_t, BlockModel &block) {
        block.each_open([this](const Request &r) {
            impl_->out.tables.request(r, impl_->linker.requests().flush_of(r), Served{}, false);
        });
    });
}
bool Core::passed(std::int64_t now_ns) {
    impl_->take_steps(now_ns);
    impl_->stitcher.advance(std::max(now_ns, impl_->common.now.last_ns));
    return impl_->out.tables.pending_rows() > 0;
}
const StringPool &Core::strings() const { return impl_->common.strings; }
void Core::loss(std::string_view name, std::string_view severity, std::string_view origin, std::uint64_t count) {
    impl_->out.tables.loss(name, severity, origin, count);
}
std::vector<std::string> Core::take_new_strings() { return impl_->common.strings.take_new(); }
std::uint64_t Core::events_seen() const { return impl_->common.now.events; }

}  // namespace opline
