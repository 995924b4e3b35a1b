// SPDX-License-Identifier: MIT
#include "ctf/reader.hpp"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "ctf/relay.hpp"
#include "ctf/survey.hpp"
#include "ctf/trace.hpp"
#include "event/merge.hpp"

namespace opline::ctf {

namespace {

// What was read stays mapped up to this in all; a system call gives back no less of a stream than the second. Files are
// read in huge pages where one of each is no more than that, too.
constexpr std::size_t kMapped = 32u << 20, kLeastStep = 512u << 10, kHugePage = 2u << 20;
constexpr std::ptrdiff_t kLongRun = 8;  // events of one stream in a row: then it is worth while to ask whose turn it is
// of a stream are decoded at once so many events, and no more slots
constexpr std::size_t kBlock = 48, kBlockSlots = 2048;
// room for so many slots ends a batch, which keeps it from being used again
constexpr std::size_t kSpentSlots = 1u << 16;

}  // namespace

struct Reader::Impl : StreamNotes {
    // Notes come from the stream that is being read, and go into the batch at the place that it has come to.
    void discarded(std::uint64_t begin, std::uint64_t end, std::uint64_t count, bool packets) override {
        const Stream &s = *speaker;
        note({s.number, packets ? Gap::Kind::kPackets : Gap::Kind::kEvents, s.to_ns(begin), s.to_ns(end), count, {}});
    }
    void rest_unread(const PacketInfo &packet, std::uint64_t ordinal, std::uint64_t bits, bool counted,
                     std::int64_t from_ns, std::int64_t until_ns) override {
        if (counted) note({speaker->number, Gap::Kind::kEvents, from_ns, std::max(from_ns, until_ns), 0, {}});
        if (for_bt2)
            rests.push_back({speaker, speaker->file().path(), speaker->file().size(), ordinal, packet, bits, counted});
    }
    void damaged(std::int64_t from_ns, const std::string &why) override {
        if (for_bt2) damages[speaker->decl.path] = why;
        note({speaker->number, Gap::Kind::kDamage, from_ns, kNoTime, 0, why});
    }
    void lost(Loss loss, const std::string &message) override { losses.add(loss, message); }
    void note(const Gap &gap) { filling->notes.push_back({filling->count, gap, std::string(gap.why)}); }

    std::vector<std::shared_ptr<Trace>> traces;
    std::vector<std::unique_ptr<Stream>> streams;
    std::vector<std::size_t> trace_of;
    ReadLosses losses;
    Survey survey;
    // For babeltrace2's sake: what decoding showed.
    struct Rest {
        const Stream *stream;
        std::string path;  // of the file
        std::size_t file_bytes;
        std::uint64_t ordinal;  // of the packet in its stream
        PacketInfo packet;
        std::uint64_t bits;  // of it that can be decoded
        bool counted;
    };
    bool for_bt2 = false;
    std::vector<Rest> rests;
    std::map<std::string, std::string> damages;  // why a stream ends too early, by path
    EventSink *consumer = nullptr;
    // A stream with what has been decoded of it and not merged yet.
    struct Feed {
        Stream *stream = nullptr;
        EventBlock block;
        Slot *room = nullptr;  // that its slots are in
        const Event *at = nullptr, *end = nullptr;
        bool ended = false;
    };
    std::vector<Feed> feeds;
    Merge<Feed> merge;
    std::optional<SlotPool> pool;
    EventBatch batch;  // of the thread that consumes, as long as it decodes, too
    EventBatch *filling = nullptr;
    const Stream *speaker = nullptr;
    bool finished = false;
    std::unique_ptr<Relay> relay;  // last: it ends its thread before all else goes
    std::uint64_t bytes_total = 0;
    std::uint64_t event_ids = 0;  // in all stream classes of all traces

    // The feed's block has been merged: on to the next.
    void refill(Feed &feed) {
        EventBlock &block = feed.block;
        if (!feed.room || !pool->fits(feed.room, block.next_slots())) {
            if (feed.room) filling->spent.push_back(feed.room);
            feed.room = pool->take();
            block.go_on_at(feed.room);
        }
        speaker = feed.stream;
        feed.ended = !feed.stream->fill(block, *this);
        consumer->name_threads(block.begin(), block.end());
        feed.at = block.begin();
        feed.end = block.end();
    }

    // Times in their order, but what stands behind a block's end (kNoTime) is the last.
    static std::uint64_t order_of(std::int64_t time_ns) {
        return static_cast<std::uint64_t>(time_ns) - static_cast<std::uint64_t>(kNoTime) - 1;
    }

    // Events of the first stream, one at least: until it has none left or the second is next.
    static Event *merge_one(Feed &feed, const Merge<Feed>::Head *second, Event *out, const Event *past) {
        const auto bound = second ? order_of(second->time_ns) : ~std::uint64_t{0};
        const Event *x = feed.at;
        do {
            *out++ = *x++;
        } while (order_of(x->ts_ns) < bound && out != past);
        feed.at = x;
        return out;
    }

    // Events of the first two, one at least: until one of them has none left or the third may be next. At equal times
    // `fx` is first. Which of the two is next is not asked but computed: of streams that take turns it can't be
    // guessed.
    static Event *merge_two(Feed &fx, Feed &fy, const Merge<Feed>::Head *third, Event *out, const Event *past) {
        const auto bound = third ? order_of(third->time_ns) : ~std::uint64_t{0};
        const Event *x = fx.at, *y = fy.at;
        std::int64_t x_ns = x->ts_ns, y_ns = y->ts_ns;
        do {
            const bool take = y_ns < x_ns;
            *out++ = *(take ? y : x);
            y += take;
            x += 1 - static_cast<std::ptrdiff_t>(take);
            x_ns = x->ts_ns;
            y_ns = y->ts_ns;
        } while (order_of(std::min(x_ns, y_ns)) < bound && out != past);
        fx.at = x;
        fy.at = y;
        return out;
    }

    // Adds events in merge order to the batch, until there are so many in it (or it holds too many blocks, of few
    // events each); false: there are none left.
    bool merge_into(EventBatch &batch, std::size_t most) {
        filling = &batch;
        Event *out = batch.events.data() + batch.count;
        Event *const past = batch.events.data() + most;
        // Whose block is at its end goes on with the next; its place in the order is made up for afterwards.
        auto go_on = [&](Feed &feed, std::int64_t &time_ns) {
            if (feed.at == feed.end) {
                batch.count = static_cast<std::size_t>(out - batch.events.data());
                refill(feed);
            }
            if (!feed.ended) time_ns = feed.at->ts_ns;
        };
        while (out != past && batch.spent.size() * pool->size() < kSpentSlots && !merge.empty()) {
            auto *a = &merge.top(), *b = merge.second();
            Feed &first = *a->source;
            if (!b || (first.end - first.at > kLongRun && first.at[kLongRun].ts_ns < b->time_ns)) {
                out = merge_one(first, b, out, past);
            } else {
                Feed &second = *b->source;
                const bool swap = b->rank < a->rank;
                out = merge_two(swap ? second : first, swap ? first : second, merge.third(), out, past);
                go_on(second, b->time_ns);
                if (second.ended) merge.remove(b);
                else merge.settle(b);
            }
            go_on(first, a->time_ns);
            if (first.ended) merge.remove(a);
            else merge.settle(a);
        }
        batch.count = static_cast<std::size_t>(out - batch.events.data());
        batch.bytes_read = read_so_far();
        return !merge.empty();
    }
    std::uint64_t read_so_far() const {
        std::uint64_t total = 0;
        for (const auto &s : streams) total += s->bytes_read();
        return total;
    }

    // Those of the channels that there are streams of.
    void declare_classes(std::size_t number) {
        Trace &trace = *traces[number];
        std::set<std::uint64_t> read;
        for (std::size_t i = 0; i < streams.size(); ++i)
            if (trace_of[i] == number) read.insert(streams[i]->stream_id);
        for (const auto &e : trace.meta.events) {
            const StreamClassDecl &stream_class = trace.stream_class(e);
            if (read.count(e.stream_id) == 0 || trace.classes[e.stream_id].declared) continue;
            auto payload = leaves_of(e.payload, FieldScope::kPayload);
            auto common = leaves_of(stream_class.event_context, FieldScope::kContext);
            auto specific = leaves_of(e.context, FieldScope::kContext);
            ClassDecl decl;
            decl.name = e.name;
            decl.domain = trace.domain();
            for (const auto *part : {&payload, &common, &specific})
                for (const auto &leaf : *part)
                    decl.fields.push_back(
                        leaf.addressable ? leaf.decl : FieldDecl{leaf.decl.name, FieldType::kOther, leaf.decl.scope});
            const ClassPlan plan = consumer->add_class(decl);
            std::vector<std::int32_t> slot_of(decl.fields.size(), -1);
            for (std::size_t k = 0; k < plan.wanted.size(); ++k) slot_of[plan.wanted[k]] = static_cast<std::int32_t>(k);
            auto part = [&](std::size_t begin, std::size_t size) {
                return std::vector<std::int32_t>(slot_of.begin() + static_cast<std::ptrdiff_t>(begin),
                                                 slot_of.begin() + static_cast<std::ptrdiff_t>(begin + size));
            };
            Compiler compiler;
            compiler.add(stream_class.event_context, Location::Root::kCommonContext,
                         part(payload.size(), common.size()));
            compiler.add(e.context, Location::Root::kSpecificContext,
                         part(payload.size() + common.size(), specific.size()));
            compiler.add(e.payload, Location::Root::kPayload, part(0, payload.size()));
            EventClass &event = trace.place(e, event_ids);
            event.cls = plan.id;
            event.slots = static_cast<std::uint32_t>(plan.wanted.size());
            event.time_slot = plan.time_slot;
            std::size_t field = 0;
            for (const auto *leaves : {&payload, &common, &specific})
                for (const auto &leaf : *leaves) {
                    if (!leaf.addressable && slot_of[field] >= 0) event.absent.push_back(slot_of[field]);
                    ++field;
                }
            event.program = compiler.take();
            event.usual = Straight(event.program, 0) && event.absent.empty();
            StreamClass &cls = trace.classes[e.stream_id];
            cls.slot_count = std::max(cls.slot_count, plan.wanted.size());
            cls.registers = std::max(cls.registers, event.program.registers);
        }
        for (const std::uint64_t id : read) {
            StreamClass &cls = trace.classes[id];
            if (!cls.declared) cls.gather_usual();
            cls.declared = true;
        }
    }
};

namespace {

std::vector<std::shared_ptr<Trace>> load_traces(const std::vector<std::string> &paths) {
    std::vector<std::shared_ptr<Trace>> out;
    for (const auto &p : paths) out.push_back(load_trace(p));
    return out;
}

}  // namespace

Reader::Reader(const std::vector<std::string> &paths, std::uint32_t cpus) : Reader(load_traces(paths), cpus) {}

Reader::Reader(std::vector<std::shared_ptr<Trace>> traces, std::uint32_t cpus) : impl_(std::make_unique<Impl>()) {
    impl_->traces = std::move(traces);
    std::size_t files = 0;
    for (const auto &trace : impl_->traces)
        for (const auto &file : trace->files) {
            impl_->bytes_total += file.bytes;
            files += file.bytes != 0;
        }
    for (std::size_t i = 0; i < impl_->traces.size(); ++i)
        for (auto &s : impl_->survey.streams_of(*impl_->traces[i], impl_->losses, files * kHugePage <= kMapped)) {
            impl_->streams.push_back(std::move(s));
            impl_->trace_of.push_back(i);
        }
    impl_->survey.find_missing(impl_->losses, cpus);
}

Reader::~Reader() = default;

void Reader::open(EventSink &consumer, unsigned threads) {
    Impl &m = *impl_;
    m.consumer = &consumer;
    for (std::size_t i = 0; i < m.traces.size(); ++i) m.declare_classes(i);
    std::vector<const StreamDecl *> decls;
    for (const auto &s : m.streams) decls.push_back(&s->decl);
    const auto ranks = stream_ranks(decls);
    std::size_t most_slots = 0;
    for (std::size_t i = 0; i < m.streams.size(); ++i) {
        Stream &s = *m.streams[i];
        s.cls = &m.traces[m.trace_of[i]]->classes.at(s.stream_id);
        s.number = consumer.add_stream(s.decl);
        s.prepare(std::max(kLeastStep, kMapped / m.streams.size()));
        most_slots = std::max(most_slots, s.cls->slot_count);
    }
    const std::size_t block_events = std::clamp<std::size_t>(kBlockSlots / (most_slots + 1), 1, kBlock);
    m.pool.emplace(block_events * most_slots + 1);
    m.filling = &m.batch;
    m.feeds.reserve(m.streams.size());
    for (std::size_t i = 0; i < m.streams.size(); ++i) {
        Impl::Feed &feed = m.feeds.emplace_back(Impl::Feed{m.streams[i].get(), EventBlock(block_events)});
        m.refill(feed);
        if (!feed.ended) m.merge.add({feed.at->ts_ns, ranks[i], &feed});
    }
    m.batch.replay(consumer);  // what they said before their first events
    m.pool->reclaim(m.batch);
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
            m.batch.replay(*m.consumer);
            max_events -= m.batch.count;
            m.pool->reclaim(m.batch);
        }
    }
    if (more) return true;
    if (!m.finished) m.finished = m.consumer->finish();
    return !m.finished;
}

std::uint64_t Reader::bytes_total() const { return impl_->bytes_total; }

std::uint64_t Reader::bytes_read() const { return impl_->relay ? impl_->relay->bytes_read() : impl_->read_so_far(); }

const ReadLosses &Reader::losses() const {
    if (!impl_->finished) impl_->relay.reset();  // what decodes adds to them
    return impl_->losses;
}

std::string Reader::survey_json() const {
    using nlohmann::json;
    auto time = [](std::int64_t ns) { return ns == kNoTime ? json(nullptr) : json(ns); };
    json out = {{"streams", impl_->streams.size()}, {"missing", json::array()}, {"kernel_cpus", json::object()}};
    for (const Missing &m : impl_->survey.missing())
        out["missing"].push_back({{"stream", m.stream},
                                  {"kernel", m.domain == Domain::kKernel},
                                  {"begin_ns", time(m.begin_ns)},
                                  {"end_ns", time(m.end_ns)},
                                  {"packets", m.packets}});
    for (const auto &[host, cpus] : impl_->survey.kernel_cpus()) out["kernel_cpus"][host] = cpus;
    return out.dump(-1, ' ', false, json::error_handler_t::replace);
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
    m.for_bt2 = true;
    open(nobody);
    while (run(~std::uint64_t{0})) {}
    m.consumer = nullptr;
    json out = {{"files", json::object()}, {"damaged", m.damages}, {"rests", json::object()}};
    std::map<std::string, Mending> mendings = m.survey.mendings;
    for (const Impl::Rest &rest : m.rests) {
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
    return out.dump(-1, ' ', false, json::error_handler_t::replace);
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
    return out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace opline::ctf
