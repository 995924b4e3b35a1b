// SPDX-License-Identifier: MIT
#include "ctf_reader.hpp"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "ctf_relay.hpp"
#include "ctf_trace.hpp"
#include "merge.hpp"

namespace opline::ctf {

namespace fs = std::filesystem;

namespace {

// What was read stays mapped up to this in all; a system call gives back no less of a stream than the second.
constexpr std::size_t kMapped = 32u << 20, kLeastStep = 512u << 10;

}  // namespace

struct Reader::Impl : StreamNotes {
    // Notes come from the stream that is being read.
    void discarded(std::uint64_t begin, std::uint64_t end, std::uint64_t count, bool packets) override {
        const Stream &s = *speaker;
        if (out) out->discarded(s.number, s.to_ns(begin), s.to_ns(end), count, packets);
        else consumer->discarded(s.number, s.to_ns(begin), s.to_ns(end), count, packets);
    }
    void damaged(std::int64_t from_ns, const std::string &why) override {
        if (out) out->damaged(speaker->number, from_ns, why);
        else consumer->damaged(speaker->number, from_ns, why);
    }
    void lost(Loss loss, const std::string &message) override { losses.add(loss, message); }

    std::vector<std::unique_ptr<Trace>> traces;
    std::vector<std::unique_ptr<Stream>> streams;
    std::vector<std::size_t> trace_of;
    ReadLosses losses;
    Consumer *consumer = nullptr;
    Merge<Stream> merge;
    bool finished = false;
    const Stream *speaker = nullptr;
    Relay *out = nullptr;                  // in the thread that decodes, if there is one
    std::vector<std::uint32_t> slots_of;   // by the consumer's class
    std::unique_ptr<Relay> relay;          // last: it ends its thread before all else goes
    std::uint64_t event_ids = 0;  // in all stream classes of all traces

    // Gives events in merge order to `take`, until it wants no more; false: there are none left.
    template <class Take>
    bool merge_into(Take take) {
        bool wanted = true;
        while (wanted && !merge.empty()) {
            auto &top = merge.top();
            Stream &s = *top.source;
            const auto *second = merge.second();
            speaker = &s;
            bool more = true;
            do {
                wanted = take(Event{s.time_ns, s.event_class->cls, s.number, s.cpu(), s.slots()});
                more = s.next(*this);
                top.time_ns = s.time_ns;
            } while (more && wanted && (!second || top < *second));
            if (more) merge.settle_top();
            else merge.remove_top();
        }
        return !merge.empty();
    }
    std::uint64_t read_so_far() const {
        std::uint64_t total = 0;
        for (const auto &s : streams) total += s->bytes_read();
        return total;
    }

    void declare_classes(Trace &trace) {
        for (const auto &e : trace.meta.events) {
            const StreamClassDecl &stream_class = trace.stream_class(e);
            auto payload = leaves_of(e.payload, FieldScope::kPayload);
            auto common = leaves_of(stream_class.event_context, FieldScope::kContext);
            auto specific = leaves_of(e.context, FieldScope::kContext);
            ClassDecl decl;
            decl.name = e.name;
            decl.domain = trace.domain();
            for (const auto *part : {&payload, &common, &specific})
                for (const auto &leaf : *part) decl.fields.push_back(leaf.addressable ? leaf.decl : FieldDecl{leaf.decl.name, FieldType::kOther, leaf.decl.scope});
            const ClassPlan plan = consumer->add_class(decl);
            std::vector<std::int32_t> slot_of(decl.fields.size(), -1);
            for (std::size_t k = 0; k < plan.wanted.size(); ++k) slot_of[plan.wanted[k]] = static_cast<std::int32_t>(k);
            auto part = [&](std::size_t begin, std::size_t size) {
                return std::vector<std::int32_t>(slot_of.begin() + static_cast<std::ptrdiff_t>(begin), slot_of.begin() + static_cast<std::ptrdiff_t>(begin + size));
            };
            Compiler compiler;
            compiler.add(stream_class.event_context, Location::Root::kCommonContext, part(payload.size(), common.size()));
            compiler.add(e.context, Location::Root::kSpecificContext, part(payload.size() + common.size(), specific.size()));
            compiler.add(e.payload, Location::Root::kPayload, part(0, payload.size()));
            EventClass &event = trace.place(e, event_ids);
            event.cls = plan.id;
            if (slots_of.size() <= plan.id) slots_of.resize(plan.id + 1);
            slots_of[plan.id] = static_cast<std::uint32_t>(plan.wanted.size());
            event.time_slot = plan.time_slot;
            std::size_t field = 0;
            for (const auto *leaves : {&payload, &common, &specific})
                for (const auto &leaf : *leaves) {
                    if (!leaf.addressable && slot_of[field] >= 0) event.absent.push_back(slot_of[field]);
                    ++field;
                }
            event.program = compiler.take();
            event.straight = Straight(event.program);
            event.usual = event.straight && event.absent.empty() && event.time_slot < 0;
            StreamClass &cls = trace.classes[e.stream_id];
            cls.slot_count = std::max(cls.slot_count, plan.wanted.size());
            cls.registers = std::max(cls.registers, event.program.registers);
        }
        for (auto &[id, cls] : trace.classes) cls.gather_usual();
    }
};

Reader::Reader(const std::vector<std::string> &paths) : impl_(std::make_unique<Impl>()) {
    for (const auto &p : paths) impl_->traces.push_back(load_trace(p));
    for (std::size_t i = 0; i < impl_->traces.size(); ++i)
        for (auto &s : streams_of(*impl_->traces[i], impl_->losses)) {
            impl_->streams.push_back(std::move(s));
            impl_->trace_of.push_back(i);
        }
}

Reader::~Reader() = default;

void Reader::open(Consumer &consumer, unsigned threads) {
    Impl &m = *impl_;
    m.consumer = &consumer;
    for (auto &trace : m.traces) m.declare_classes(*trace);
    std::vector<const StreamDecl *> decls;
    for (const auto &s : m.streams) decls.push_back(&s->decl);
    const auto ranks = stream_ranks(decls);
    for (std::size_t i = 0; i < m.streams.size(); ++i) {
        Stream &s = *m.streams[i];
        s.cls = &m.traces[m.trace_of[i]]->classes.at(s.stream_id);
        s.number = consumer.add_stream(s.decl);
        m.speaker = &s;
        s.prepare(std::max(kLeastStep, kMapped / m.streams.size()));
        if (s.next(m)) m.merge.add({s.time_ns, ranks[i], &s});
    }
    if (threads < 2) return;
    auto produce = [&m](Relay &out) {
        m.out = &out;
        m.merge_into([&](const Event &e) { return out.event(e); });
    };
    m.relay = std::make_unique<Relay>(produce, [&m] { return m.read_so_far(); }, m.slots_of);
}

bool Reader::run(std::uint64_t max_events) {
    Impl &m = *impl_;
    bool more;
    if (m.relay) {
        more = m.relay->deliver(*m.consumer, max_events);
    } else {
        more = m.merge_into([&](const Event &e) {
            m.consumer->event(e);
            return --max_events > 0;
        });
    }
    if (more) return true;
    if (!m.finished) {
        m.finished = true;
        m.consumer->finish();
    }
    return false;
}

std::uint64_t Reader::bytes_total() const {
    std::uint64_t total = 0;
    for (const auto &trace : impl_->traces)
        for (const auto &entry : fs::directory_iterator(trace->path))
            if (entry.is_regular_file() && entry.path().filename() != "metadata") total += entry.file_size();
    return total;
}

std::uint64_t Reader::bytes_read() const { return impl_->relay ? impl_->relay->bytes_read() : impl_->read_so_far(); }

const ReadLosses &Reader::losses() const {
    if (!impl_->finished) impl_->relay.reset();  // what decodes adds to them
    return impl_->losses;
}

std::string Reader::environment_json() const {
    nlohmann::json out = nlohmann::json::array();
    for (const auto &t : impl_->traces) {
        const ClockDecl &c = t->clock();
        nlohmann::json env = nlohmann::json::object();
        for (const auto &[name, value] : t->meta.env) env[name] = value.text;
        out.push_back({{"path", t->path}, {"env", env}, {"uuid", t->meta.uuid},
                       {"clock", {{"name", c.name}, {"uuid", c.uuid}, {"frequency", c.frequency}, {"offset_s", c.offset_s}, {"offset_cycles", c.offset}}}});
    }
    return out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace opline::ctf
