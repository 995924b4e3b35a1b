// SPDX-License-Identifier: MIT
#include "core/impl.hpp"

#include <algorithm>

#include "output/columns.hpp"

namespace opline {
namespace {

constexpr std::size_t kChunkRows = 1u << 16;

}  // namespace

Core::Core(const std::string &plan_json) : Core(parse_plan(plan_json)) {}

Core::Core(Plan plan) : impl_(std::make_unique<Impl>(std::move(plan))) {
    if (!impl_->plan.clock_bounds.empty()) attribute_each();  // where an op is cut depends on its times
    for (const auto &d : impl_->plan.devices) impl_->blocks.here(d.host).know(d.dev, {d.queues, d.fua});
    for (const auto &s : impl_->plan.stacks) impl_->waits.causes.know(s, impl_->strings);
    for (const auto &l : impl_->plan.lost) {
        impl_->lost_anywhere(l.begin_ns.value_or(kNoTime), l.end_ns.value_or(std::numeric_limits<std::int64_t>::max()));
        if (!l.end_ns) impl_->sched.lost_from(l.begin_ns.value_or(kNoTime));
    }
}
Core::~Core() = default;

Hosts Core::Impl::number_hosts(Plan &plan, StringPool &strings) {
    std::vector<std::string> names;
    for (const auto &host : plan.hosts) names.push_back(host.name);
    Hosts hosts(names, strings);
    for (const auto &spec : plan.hosts) {
        const std::uint32_t host = strings.intern(spec.name);
        for (const std::int32_t pid : spec.population)
            plan.population.push_back(static_cast<std::int32_t>(hosts.thread(host, pid)));
        for (DeviceSpec device : spec.devices) {
            device.host = host;
            device.dev = hosts.device(host, device.dev);
            plan.devices.push_back(std::move(device));
        }
        for (StackSpec stack : spec.stacks) {
            stack.host = host;
            plan.stacks.push_back(std::move(stack));
        }
    }
    for (auto &file : plan.files) {
        if (file.host_name.empty()) continue;
        file.host = strings.intern(file.host_name);
        if (file.disk) file.disk = hosts.device(file.host, *file.disk);
    }
    return hosts;
}

void Core::Impl::request_done(const Request &r) {
    request_ended(r);
    Served served = linker.requests().request_done(r);
    stitcher.ios().request_done(r);
    if (Op *own = stitcher.own_requests().op_of(current_host, r)) {
        linker.requests().serve(*own, r);
        served.ops = 1;
        served.only = op_ref(*own);
    }
    if (population.known()) members.request_done(served);
    tables.request(r, linker.requests().flush_of(r), served, population.known());
}

void Core::Impl::tell_link(bool counts, const LinkRow &row, const BatchBio &bio, std::int64_t since_ns,
                           std::int64_t until_ns) {
    each_sink(counts, [&](OpSink &sink) {
        if (&sink == &tables) held.hold(row, bio, since_ns, until_ns);
        else sink.link(row, bio);
    });
}

void Core::Impl::tell_held_links(bool all) {
    held.tell(
        linker.lost(), [&](std::uint64_t ref) { return all || !stitcher.ops().find(ref); },
        [&](const LinkRow &row, const BatchBio &bio) { tables.link(row, bio); });
}

ClassPlan Core::add_class(const ClassDecl &decl) {
    const RunTables &tables = impl_->tables;
    BoundClass bound = bind_class(decl, impl_->plan, impl_->strings,
                                  {tables.keeps_states(), tables.keeps_transitions(), tables.keeps_requests()});
    bound.plan.id = static_cast<std::uint32_t>(impl_->classes.size());
    if (bound.kind == ClassKind::kRequest) impl_->blocks.whole();
    if (bound.kind == ClassKind::kBlock || bound.kind == ClassKind::kPlug || bound.kind == ClassKind::kRequest) {
        impl_->has_block_classes = true;
        impl_->converted =
            impl_->converted || (decl.domain == Domain::kKernel && decl.name.find(':') != std::string::npos);
    }
    if (bound.kind == ClassKind::kOffCpu) impl_->collects_states = true;
    if (bound.kind == ClassKind::kSchedWake && bound.sched.wake == Wake::kWaking) impl_->blocks.expect_wakes();
    if (bound.kind == ClassKind::kProcess && !bound.process.of_all) impl_->population.told();
    impl_->thread_names.add_class(bound.comm_slot);
    impl_->classes.push_back(std::make_unique<BoundClass>(std::move(bound)));
    return impl_->classes.back()->plan;
}

std::uint32_t Core::add_stream(const StreamDecl &decl) {
    impl_->streams.push_back(decl);
    impl_->lost_ends.add_stream(decl);
    impl_->stream_hosts.push_back(impl_->strings.intern(decl.host));
    impl_->identities.threads.hosts.set_clock(impl_->stream_hosts.back(), decl.clock);
    return static_cast<std::uint32_t>(impl_->streams.size() - 1);
}

void Core::name_threads(Event *first, Event *past) { impl_->thread_names.number(first, past); }

void Core::events(const Event *first, const Event *past) {
    Impl &m = *impl_;
    if (m.events == 0) m.first_ns = first->ts_ns;
    m.events += static_cast<std::uint64_t>(past - first);
    for (; first != past; ++first) m.take(*first);
}

void Core::gap(const Gap &gap) {
    Impl &m = *impl_;
    m.stitcher.advance(m.last_ns);
    if (gap.kind == Gap::Kind::kDamage) m.damaged(gap);
    else m.discarded(gap);
}

void Core::missing(std::string_view stream, Domain domain, std::int64_t begin_ns, std::int64_t end_ns,
                   std::uint64_t packets) {
    impl_->missing(stream, domain, begin_ns, end_ns, packets);
}

void Core::know(const KnownStreams &streams) {
    for (const auto &part : streams.unreadable)
        impl_->unreadable(streams.host, part.domain, part.channel, part.begin_ns, part.end_ns);
    if (streams.kernel_cpus.empty()) return;
    auto &known = impl_->cpus[impl_->strings.intern(streams.host)];
    for (const std::uint32_t cpu : streams.kernel_cpus)
        if (cpu < Impl::kMostCpus) {
            if (known.size() <= cpu) known.resize(cpu + 1);
            known[cpu] = true;
        }
}

bool Core::finish() {
    Impl &m = *impl_;
    if (m.finished) return true;
    if (!m.finishing) {
        m.finishing = true;
        m.take_steps(RequestSteps::kNone - 1);
        m.numbers.end(m.numbers_missed());
        m.holes.each_unexplained([&m](const Numbers::Hole &hole) {
            m.events_missing += hole.missing;
            m.tables.missed(std::nullopt, hole.begin_ns, hole.end_ns, hole.missing);
        });
        // First the requests, so that what completed is known to the ops that are still to be settled.
        m.blocks.each([&m](std::uint32_t host, BlockModel &block) {
            if (!m.plan.hosts.empty()) m.current_host = host;
            block.finish();
        });
        m.stitcher.last_event(m.last_ns);
    }
    while (m.stitcher.settling().settle_next_ended())
        if (take_ready()) return false;
    m.stitcher.settling().settle_open();
    m.tell_held_links(true);
    for (const auto &l : m.plan.lost)
        m.tables.discarded(l.why, l.begin_ns.value_or(kNoTime), l.end_ns.value_or(kNoTime), 0, false);
    for (const auto &[name, counts] : m.fates())
        for (std::size_t f = 0; f < counts.size(); ++f)
            if (counts[f] != 0) m.tables.fate(m.strings.intern(name), kFateNames[f], counts[f]);
    return m.finished = true;
}

void Core::keep_tables(const std::vector<std::string> &names) {
    impl_->tables.keep(names);
    if (!impl_->tables.keeps_transitions()) {
        impl_->stitcher.ops().shapes().forget_details();
        impl_->attributor.leave_out_transitions();
    }
    impl_->links_wanted = impl_->tables.kept(columns::kLinks);
    if (!impl_->tables.keeps_ops()) impl_->stitcher.skip_texts();
}
void Core::write_csv(OpCsv &csv, bool all) {
    keep_tables({});
    impl_->csv.emplace(impl_->strings, csv, all);
    impl_->sinks.push_back(&*impl_->csv);
    impl_->links_wanted = csv.form() == OpCsv::Rows::kOps;
    if (csv.form() == OpCsv::Rows::kOps) impl_->stitcher.details().keep_objects();
}
void Core::count_all_programs() { impl_->members.all_programs = true; }
void Core::attribute_each() { impl_->stitcher.ops().shapes().none(); }
std::size_t Core::shapes() const { return impl_->stitcher.ops().shapes().size(); }
void Core::keep_statistics(bool tainted, std::vector<std::string> classes) {
    impl_->statistics.emplace(impl_->strings, tainted, std::move(classes));
    impl_->sinks.push_back(&*impl_->statistics);
}
bool Core::take_ready() const { return impl_->finished || impl_->tables.pending_rows() >= kChunkRows; }
std::vector<Table> &Core::tables() { return impl_->tables.tables(); }
void Core::show_open() {
    impl_->blocks.each([this](std::uint32_t, BlockModel &block) {
        block.each_open([this](const Request &r) {
            impl_->tables.request(r, impl_->linker.requests().flush_of(r), Served{}, false);
        });
    });
}
bool Core::passed(std::int64_t now_ns) {
    impl_->take_steps(now_ns);
    impl_->stitcher.advance(std::max(now_ns, impl_->last_ns));
    return impl_->tables.pending_rows() > 0;
}
const StringPool &Core::strings() const { return impl_->strings; }
void Core::loss(std::string_view name, std::string_view severity, std::string_view origin, std::uint64_t count) {
    impl_->tables.loss(name, severity, origin, count);
}
std::vector<std::string> Core::take_new_strings() { return impl_->strings.take_new(); }
std::uint64_t Core::events_seen() const { return impl_->events; }

}  // namespace opline
