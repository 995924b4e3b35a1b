// SPDX-License-Identifier: MIT
#include "ctf_reader.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "ctf_stream.hpp"
#include "merge.hpp"

namespace opline::ctf {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMaxEventIds = 1u << 18;

// One trace: its metadata, and what is compiled of it.
struct Trace {
    std::string path;
    Metadata meta;
    PacketLayout layout;
    std::map<std::uint64_t, StreamClass> classes;
    std::uint64_t frequency = 1'000'000'000;
};

std::string read_file(const fs::path &path) {
    std::ifstream in(path, std::ios::binary);
    if (!in) throw Malformed("cannot read " + path.string());
    std::ostringstream out;
    out << in.rdbuf();
    return out.str();
}

bool is_field(const Type &t, std::uint32_t bits, std::uint32_t align_bits, Role role, bool big_endian) {
    return t.is_integer() && t.size_bits == bits && !t.is_signed && !t.reversed && t.align_bits == align_bits && t.big_endian == big_endian &&
           (t.roles & (bit(Role::kEventId) | bit(Role::kTimestamp))) == bit(role);
}

// struct { enum : uintN { compact, extended } id; variant <id> { struct { uintM timestamp; } compact;
// struct { uint32 id; uint64 timestamp; } extended; } v; }
bool recognise_header(const Type &t, StreamClass &out) {
    if (t.members.size() != 2 || t.align_bits > 8 || alignment(t) > 8) return false;
    const Type &id = *t.members[0].type, &v = *t.members[1].type;
    const bool compact = id.size_bits == 5;
    const std::uint32_t id_bits = compact ? 5 : 16, time_bits = compact ? 27 : 32, align_bits = compact ? 1 : 8;
    const std::int64_t last = compact ? 31 : 65535;
    if (!is_field(id, id_bits, align_bits, Role::kEventId, id.big_endian)) return false;
    if (v.kind != Type::Kind::kVariant || v.members.size() != 2 || v.location.path.back() != t.members[0].name) return false;
    if (v.selections.empty() && id.kind != Type::Kind::kEnum) return false;
    const Type &small = *v.members[0].type, &large = *v.members[1].type;
    if (small.kind != Type::Kind::kStruct || small.members.size() != 1 || large.kind != Type::Kind::kStruct || large.members.size() != 2) return false;
    if (!is_field(*small.members[0].type, time_bits, align_bits, Role::kTimestamp, id.big_endian) || small.align_bits > align_bits ||
        !is_field(*large.members[0].type, 32, 8, Role::kEventId, id.big_endian) || !is_field(*large.members[1].type, 64, 8, Role::kTimestamp, id.big_endian))
        return false;
    const auto tags = selections_of(v, id);
    auto is = [&](const std::vector<Range> &r, std::int64_t low, std::int64_t high) { return r.size() == 1 && r[0].low == low && r[0].high == high; };
    if (!is(tags[0], 0, last - 1) || !is(tags[1], last, last)) return false;
    out.header = compact ? HeaderKind::kCompact : HeaderKind::kLarge;
    out.big_endian = id.big_endian;
    return true;
}

void compile_header(const TypePtr &t, StreamClass &out) {
    if (!t || t->kind != Type::Kind::kStruct) throw Unsupported("a stream class without event headers");
    if (recognise_header(*t, out)) return;
    out.header = HeaderKind::kOther;
    out.header_align_bits = alignment(*t);
    Compiler compiler;
    compiler.add(t, Location::Root::kEventHeader, [&](const Type &field, bool) -> std::int32_t {
        if (field.roles & bit(Role::kEventId)) return 0;
        if (!(field.roles & bit(Role::kTimestamp))) return -1;
        out.timestamp_bits.push_back(field.size_bits);
        return static_cast<std::int32_t>(out.timestamp_bits.size());
    });
    if (out.timestamp_bits.empty()) throw Unsupported("events without a time");
    out.header_program = compiler.take();
    out.registers = out.header_program.registers;
}

void compile_packets(Trace &trace) {
    auto compile = [](const TypePtr &structure, Location::Root root) {
        Compiler compiler;
        compiler.add(structure, root, [](const Type &field, bool) -> std::int32_t {
            for (unsigned r = 0; r < static_cast<unsigned>(Role::kCount); ++r)
                if (field.roles & bit(static_cast<Role>(r))) {
                    if (field.is_signed) throw Unsupported("a packet's field with a meaning that is no unsigned integer");
                    return static_cast<std::int32_t>(r);
                }
            return -1;
        });
        return compiler.take();
    };
    if (trace.meta.streams.empty()) throw Unsupported("a trace without stream classes");
    trace.layout.header = compile(trace.meta.packet_header, Location::Root::kPacketHeader);
    trace.layout.uuid = trace.meta.packet_uuid;
    for (const auto &[id, s] : trace.meta.streams) trace.layout.contexts[id] = compile(s.packet_context, Location::Root::kPacketContext);
}

std::unique_ptr<Trace> load_trace(const std::string &path) {
    auto trace = std::make_unique<Trace>();
    trace->path = path;
    trace->meta = parse_metadata(metadata_text(read_file(fs::path(path) / "metadata")));
    if (trace->meta.clocks.size() != 1) throw Unsupported(std::to_string(trace->meta.clocks.size()) + " clocks in one trace");
    const ClockDecl &clock = trace->meta.clocks.begin()->second;
    trace->frequency = clock.frequency;
    compile_packets(*trace);
    for (const auto &[id, s] : trace->meta.streams) compile_header(s.event_header, trace->classes[id]);
    return trace;
}

}  // namespace

struct Reader::Impl {
    std::vector<std::unique_ptr<Trace>> traces;
    std::vector<std::unique_ptr<Stream>> streams;
    std::vector<std::size_t> trace_of;
    ReadLosses losses;
    Consumer *consumer = nullptr;
    Merge<Stream> merge;
    bool finished = false;
    std::uint64_t event_ids = 0;  // in all stream classes of all traces

    void find_streams(std::size_t index) {
        Trace &trace = *traces[index];
        std::map<std::pair<std::uint64_t, std::uint64_t>, std::vector<std::pair<std::uint64_t, std::shared_ptr<MappedFile>>>> groups;
        std::vector<fs::path> files;
        for (const auto &entry : fs::directory_iterator(trace.path))
            if (entry.is_regular_file() && entry.path().filename() != "metadata" && entry.path().filename().string()[0] != '.') files.push_back(entry.path());
        std::sort(files.begin(), files.end());
        for (const auto &file : files) {
            auto mapped = std::make_shared<MappedFile>(file.string());
            if (mapped->size() == 0) continue;  // a channel's CPU without an event
            PacketInfo info;
            std::string why;
            if (!read_packet(*mapped, 0, trace.layout, info, why)) {
                ++(why == "its header is cut off" ? losses.truncated_packets : losses.malformed_packets);
                if (losses.messages.size() < 32) losses.messages.push_back(file.string() + ": first packet: " + why + "; the file is not read");
                continue;
            }
            const std::uint64_t instance = info.has_instance ? info.instance : groups.size();
            groups[{info.stream_id, instance}].emplace_back(info.begin, mapped);
        }
        for (auto &[key, members] : groups) {
            std::stable_sort(members.begin(), members.end(), [](const auto &a, const auto &b) { return a.first < b.first; });
            StreamDecl decl;
            auto env = [&](const char *name) { auto it = trace.meta.env.find(name); return it == trace.meta.env.end() ? std::string() : it->second.text; };
            decl.host = env("hostname");
            if (decl.host.empty()) decl.host = env("host");  // perf's own conversion to CTF calls it so
            decl.domain = env("domain") == "kernel" ? Domain::kKernel : Domain::kUst;
            decl.path = members.front().second->path();
            decl.channel = channel_of(decl.path);
            decl.instance = key.second;
            std::vector<std::shared_ptr<MappedFile>> mapped;
            for (auto &m : members) mapped.push_back(m.second);
            streams.push_back(std::make_unique<Stream>(std::move(mapped), trace.layout, std::move(decl), key.first, trace.frequency));
            trace_of.push_back(index);
        }
    }

    void declare_classes(Trace &trace) {
        auto it = trace.meta.env.find("domain");
        const Domain domain = it != trace.meta.env.end() && it->second.text == "kernel" ? Domain::kKernel : Domain::kUst;
        for (const auto &e : trace.meta.events) {
            auto s = trace.meta.streams.find(e.stream_id);
            if (s == trace.meta.streams.end()) throw Malformed(trace.path + ": event \"" + e.name + "\" is of a stream class that is not declared");
            auto payload = leaves_of(e.payload, FieldScope::kPayload);
            auto common = leaves_of(s->second.event_context, FieldScope::kContext);
            auto specific = leaves_of(e.context, FieldScope::kContext);
            ClassDecl decl;
            decl.name = e.name;
            decl.domain = domain;
            for (const auto *part : {&payload, &common, &specific})
                for (const auto &leaf : *part) decl.fields.push_back(leaf.addressable ? leaf.decl : FieldDecl{leaf.decl.name, FieldType::kOther, leaf.decl.scope});
            const ClassPlan plan = consumer->add_class(decl);
            std::vector<std::int32_t> slot_of(decl.fields.size(), -1);
            for (std::size_t k = 0; k < plan.wanted.size(); ++k) slot_of[plan.wanted[k]] = static_cast<std::int32_t>(k);
            auto part = [&](std::size_t begin, std::size_t size) {
                return std::vector<std::int32_t>(slot_of.begin() + static_cast<std::ptrdiff_t>(begin), slot_of.begin() + static_cast<std::ptrdiff_t>(begin + size));
            };
            Compiler compiler;
            compiler.add(s->second.event_context, Location::Root::kCommonContext, part(payload.size(), common.size()));
            compiler.add(e.context, Location::Root::kSpecificContext, part(payload.size() + common.size(), specific.size()));
            compiler.add(e.payload, Location::Root::kPayload, part(0, payload.size()));
            StreamClass &cls = trace.classes[e.stream_id];
            if (e.id >= kMaxEventIds) throw Unsupported("an event id of " + std::to_string(e.id));
            if (cls.events.size() <= e.id) {
                event_ids += e.id + 1 - cls.events.size();
                if (event_ids > kMaxEventIds) throw Unsupported("event ids that are not dense");
                cls.events.resize(static_cast<std::size_t>(e.id) + 1);
            }
            EventClass &event = cls.events[static_cast<std::size_t>(e.id)];
            event.cls = plan.id;
            event.time_slot = plan.time_slot;
            event.known = true;
            std::size_t field = 0;
            for (const auto *leaves : {&payload, &common, &specific})
                for (const auto &leaf : *leaves) {
                    if (!leaf.addressable && slot_of[field] >= 0) event.absent.push_back(slot_of[field]);
                    ++field;
                }
            event.program = compiler.take();
            cls.slot_count = std::max(cls.slot_count, plan.wanted.size());
            cls.registers = std::max(cls.registers, event.program.registers);
        }
    }
};

Reader::Reader(const std::vector<std::string> &paths) : impl_(std::make_unique<Impl>()) {
    for (const auto &p : paths) {
        try {
            impl_->traces.push_back(load_trace(p));
        } catch (const Unsupported &e) {
            throw Unsupported(p + ": " + e.what());
        } catch (const Malformed &e) {
            throw Malformed(p + ": " + e.what());
        }
    }
    for (std::size_t i = 0; i < impl_->traces.size(); ++i) impl_->find_streams(i);
}

Reader::~Reader() = default;

void Reader::open(Consumer &consumer) {
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
        if (s.next(consumer, m.losses)) m.merge.add({s.time_ns, ranks[i], &s});
    }
}

bool Reader::run(std::uint64_t max_events) {
    Impl &m = *impl_;
    while (max_events > 0 && !m.merge.empty()) {
        auto &top = m.merge.top();
        Stream &s = *top.source;
        const auto *second = m.merge.second();
        bool more = true;
        do {
            m.consumer->event(Event{s.time_ns, s.event_class->cls, s.number, s.cpu(), s.slots()});
            --max_events;
            more = s.next(*m.consumer, m.losses);
            top.time_ns = s.time_ns;
        } while (more && max_events > 0 && (!second || top < *second));
        if (more) m.merge.settle_top();
        else m.merge.remove_top();
    }
    if (!m.merge.empty()) return true;
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

std::uint64_t Reader::bytes_read() const {
    std::uint64_t total = 0;
    for (const auto &s : impl_->streams) total += s->bytes_read();
    return total;
}

const ReadLosses &Reader::losses() const { return impl_->losses; }

std::string Reader::environment_json() const {
    nlohmann::json out = nlohmann::json::array();
    for (const auto &t : impl_->traces) {
        const ClockDecl &c = t->meta.clocks.begin()->second;
        nlohmann::json env = nlohmann::json::object();
        for (const auto &[name, value] : t->meta.env) env[name] = value.text;
        out.push_back({{"path", t->path}, {"env", env}, {"uuid", t->meta.uuid},
                       {"clock", {{"name", c.name}, {"uuid", c.uuid}, {"frequency", c.frequency}, {"offset_s", c.offset_s}, {"offset_cycles", c.offset}}}});
    }
    return out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace opline::ctf
