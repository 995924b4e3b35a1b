// SPDX-License-Identifier: MIT
#include "ctf/reader.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "base/lost_pages.hpp"
#include "ctf/merging.hpp"
#include "ctf/relay.hpp"
#include "ctf/survey.hpp"
#include "ctf/trace.hpp"

namespace opline::ctf {

namespace {

// Limits of read bytes that stay mapped: of all streams together, and the least part of a stream per system call. Files
// are read in huge pages if one huge page of each file is within the limit, too.
constexpr std::size_t kMapped = 32u << 20, kLeastStep = 512u << 10, kHugePage = 2u << 20;

}  // namespace

struct Reader::Impl : Merging {
    Survey survey;
    bool finished = false;
    std::uint64_t bytes_total = 0;
    std::unique_ptr<Relay> relay;  // last: its thread must end before all other members
};

namespace {

std::vector<std::shared_ptr<Trace>> load_traces(const std::vector<std::string> &paths,
                                                const std::vector<HostClock> &hosts,
                                                const std::vector<std::string> &going_on) {
    std::vector<std::shared_ptr<Trace>> out;
    for (const auto &p : paths) {
        out.push_back(load_trace(p));
        out.back()->goes_on = std::find(going_on.begin(), going_on.end(), p) != going_on.end();
        if (hosts.empty()) continue;
        const HostClock &host = hosts.at(out.size() - 1);
        out.back()->host_name = host.host;
        out.back()->map = std::make_shared<const ClockMap>(host.knots);
    }
    return out;
}

}  // namespace

Reader::Reader(const std::vector<std::string> &paths, std::uint32_t cpus, const std::vector<HostClock> &hosts,
               const std::vector<std::string> &going_on)
    : Reader(load_traces(paths, hosts, going_on), cpus) {}

Reader::Reader(std::vector<std::shared_ptr<Trace>> traces, std::uint32_t cpus) : impl_(std::make_unique<Impl>()) {
    impl_->traces = std::move(traces);
    std::size_t files = 0;
    for (const auto &trace : impl_->traces)
        for (const auto &file : trace->files) {
            impl_->bytes_total += file.bytes;
            files += file.bytes != 0;
        }
    for (std::size_t i = 0; i < impl_->traces.size(); ++i)
        for (auto &s : impl_->survey.streams_of(*impl_->traces[i], impl_->notes.losses, files * kHugePage <= kMapped)) {
            impl_->add(std::move(s), i);
        }
    impl_->survey.find_missing(impl_->notes.losses, cpus);
}

Reader::~Reader() = default;

void Reader::open(EventSink &consumer, unsigned threads) {
    Impl &m = *impl_;
    m.consumer = &consumer;
    for (std::size_t i = 0; i < m.traces.size(); ++i) m.declare_classes(i, false);
    m.prepare();
    for (std::size_t i = 0; i < m.streams.size(); ++i) m.begin(i, std::max(kLeastStep, kMapped / m.streams.size()));
    m.go_on();
    m.hand_on();  // the streams' notes before the first events
    if (threads < 2) return;
    auto produce = [&m](EventBatch &batch) {
        m.pool->reclaim(batch);
        return m.merge_into(batch, EventBatch::kMost);
    };
    m.relay = std::make_unique<Relay>(produce, consumer);
}

bool Reader::run(std::uint64_t max_events) {
    Impl &m = *impl_;
    bool more = true;
    if (m.relay) {
        more = m.relay->deliver(max_events);
    } else {
        while (more && max_events > 0) {
            more =
                m.merge_into(m.batch, static_cast<std::size_t>(std::min<std::uint64_t>(max_events, EventBatch::kMost)));
            max_events -= m.batch.count;
            m.hand_on();
        }
    }
    if (more) return true;
    if (m.finished) return false;
    for (const auto &trace : m.traces)
        for (const auto &file : trace->files)
            if (!file.content) keep_if_shorter(file.path.string(), file.bytes);
    m.finished = m.consumer->finish();
    return !m.finished;
}

std::uint64_t Reader::bytes_total() const { return impl_->bytes_total; }

std::uint64_t Reader::bytes_read() const {
    return impl_->relay ? impl_->relay->bytes_read() : impl_->Merging::bytes_read();
}

const ReadLosses &Reader::losses() const {
    if (!impl_->finished) impl_->relay.reset();  // the decoding thread adds to the losses
    return impl_->notes.losses;
}

std::uint64_t Reader::aligned_count() const {
    if (!impl_->finished) impl_->relay.reset();
    return impl_->aligned_count();
}

std::string Reader::survey_json() const {
    using nlohmann::json;
    auto time = [](std::int64_t ns) { return ns == kNoTime ? json(nullptr) : json(ns); };
    json out = {{"streams", impl_->streams.size()},
                {"missing", json::array()},
                {"kernel_cpus", json::object()},
                {"unreadable", json::array()}};
    for (const UnreadRest &rest : impl_->notes.rests)
        if (rest.counted)
            out["unreadable"].push_back({{"host", rest.stream->decl.host},
                                         {"kernel", rest.stream->decl.domain == Domain::kKernel},
                                         {"channel", rest.stream->decl.channel},
                                         {"begin_ns", time(rest.begin_ns)},
                                         {"end_ns", time(rest.end_ns)}});
    for (const Missing &m : impl_->survey.missing())
        out["missing"].push_back({{"stream", m.stream},
                                  {"kernel", m.domain == Domain::kKernel},
                                  {"begin_ns", time(m.begin_ns)},
                                  {"end_ns", time(m.end_ns)},
                                  {"packets", m.packets}});
    for (const auto &[host, cpus] : impl_->survey.kernel_cpus()) out["kernel_cpus"][host] = cpus;
    return json_text(std::move(out));
}

std::string Reader::mendings_json() {
    using nlohmann::json;
    Impl &m = *impl_;
    struct : EventSink {
        ClassPlan add_class(const ClassDecl &) override { return {classes++, {}, -1}; }
        std::uint32_t add_stream(const StreamDecl &) override { return streams++; }
        void events(const Event *, const Event *) override {}
        void gap(const Gap &) override {}
        bool finish() override { return true; }
        std::uint32_t classes = 0, streams = 0;
    } nobody;
    m.notes.damages_wanted = true;
    open(nobody);
    while (run(~std::uint64_t{0})) {}
    m.consumer = nullptr;
    json out = {{"files", json::object()}, {"damaged", m.notes.damages}, {"rests", json::object()}};
    std::map<std::string, Mending> mendings = m.survey.mendings;
    for (const UnreadRest &rest : m.notes.rests) {
        if (rest.counted) out["rests"][rest.stream->decl.path].push_back(rest.ordinal);
        const auto found =
            std::find_if(m.streams.begin(), m.streams.end(), [&](const auto &s) { return s.get() == rest.stream; });
        const Trace &trace = *m.traces[m.trace_of[static_cast<std::size_t>(found - m.streams.begin())]];
        const auto &context = trace.meta.streams.at(rest.packet.stream_id).packet_context;
        auto place = context ? place_of(*context, rest.packet.context_at, FieldRole::kContentSize) : std::nullopt;
        if (!place) continue;
        Mending &mending = mendings[rest.path];
        if (mending.keep == 0) mending.keep = rest.file_bytes;
        place->at += rest.packet.offset;
        place->value = rest.bits;
        mending.patches.push_back(*place);
    }
    for (const auto &[path, mending] : mendings) {
        json patches = json::array();
        for (const auto &p : mending.patches) patches.push_back({p.at, p.value, p.bytes, p.big_endian});
        out["files"][path] = {{"keep", mending.keep}, {"patches", patches}, {"order", mending.order}};
    }
    return json_text(std::move(out));
}

std::string Reader::environment_json() const {
    nlohmann::json out = nlohmann::json::array();
    for (const auto &t : impl_->traces) {
        const ClockDecl &c = t->clock();
        nlohmann::json env = nlohmann::json::object();
        for (const auto &[name, value] : t->meta.env) env[name] = value.text;
        out.push_back({{"path", t->path},
                       {"env", env},
                       {"uuid", t->meta.uuid},
                       {"clock",
                        {{"name", c.name},
                         {"uuid", c.uuid},
                         {"frequency", c.frequency},
                         {"offset_s", c.offset_s},
                         {"offset_cycles", c.offset}}}});
    }
    return json_text(std::move(out));
}

}  // namespace opline::ctf
