// SPDX-License-Identifier: MIT
#include "ctf/trace.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <set>
#include <sstream>

namespace opline::ctf {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMaxEventIds = 1u << 18;

std::string read_file(const fs::path &path) {
    std::ifstream in(path, std::ios::binary);
    if (!in) throw Malformed("cannot read " + path.string());
    std::ostringstream out;
    out << in.rdbuf();
    return out.str();
}

bool is_field(const Type &t, std::uint32_t bits, std::uint32_t align_bits, FieldRole role, bool big_endian) {
    return t.is_integer() && t.size_bits == bits && !t.is_signed && !t.reversed && t.align_bits == align_bits &&
           t.big_endian == big_endian &&
           (t.roles & (bit(FieldRole::kEventId) | bit(FieldRole::kTimestamp))) == bit(role);
}

// struct { enum : uintN { compact, extended } id; variant <id> { struct { uintM timestamp; } compact;
// struct { uint32 id; uint64 timestamp; } extended; } v; }
bool recognise_header(const Type &t, StreamClass &out) {
    if (t.members.size() != 2 || t.align_bits > 8 || alignment(t) > 8) return false;
    const Type &id = *t.members[0].type, &v = *t.members[1].type;
    const bool compact = id.size_bits == 5;
    const std::uint32_t id_bits = compact ? 5 : 16, time_bits = compact ? 27 : 32, align_bits = compact ? 1 : 8;
    const std::int64_t last = compact ? 31 : 65535;
    if (!is_field(id, id_bits, align_bits, FieldRole::kEventId, id.big_endian)) return false;
    if (v.kind != Type::Kind::kVariant || v.members.size() != 2 || v.location.path.back() != t.members[0].name)
        return false;
    if (v.selections.empty() && id.kind != Type::Kind::kEnum) return false;
    const Type &small = *v.members[0].type, &large = *v.members[1].type;
    if (small.kind != Type::Kind::kStruct || small.members.size() != 1 || large.kind != Type::Kind::kStruct ||
        large.members.size() != 2)
        return false;
    if (!is_field(*small.members[0].type, time_bits, align_bits, FieldRole::kTimestamp, id.big_endian) ||
        small.align_bits > align_bits || !is_field(*large.members[0].type, 32, 8, FieldRole::kEventId, id.big_endian) ||
        !is_field(*large.members[1].type, 64, 8, FieldRole::kTimestamp, id.big_endian))
        return false;
    const auto tags = selections_of(v, id);
    auto is = [&](const std::vector<Range> &r, std::int64_t low, std::int64_t high) {
        return r.size() == 1 && r[0].low == low && r[0].high == high;
    };
    if (!is(tags[0], 0, last - 1) || !is(tags[1], last, last)) return false;
    out.header = compact ? HeaderKind::kCompact : HeaderKind::kLarge;
    out.big_endian = id.big_endian;
    if (!out.big_endian) out.aligned_header = compact ? kCompactHeader : kLargeHeader;
    return true;
}

// The registers of packet headers, packet contexts and event headers, as read by an event's fields.
using Shared = std::map<std::uint64_t, std::set<std::int32_t>>;  // by stream class

bool reads_header(const Trace &trace, const StreamClassDecl &s, const std::set<std::int32_t> &shared) {
    Compiler compiler;
    trace.packet_passed(compiler, s);
    const auto first = static_cast<std::int32_t>(compiler.take().registers);
    return shared.lower_bound(first) != shared.end();
}

void compile_header(const Trace &trace, const StreamClassDecl &s, const std::set<std::int32_t> &shared,
                    StreamClass &out) {
    const TypePtr &t = s.event_header;
    if (!t || t->kind != Type::Kind::kStruct) throw Unsupported("a stream class without event headers");
    if (!reads_header(trace, s, shared) && recognise_header(*t, out)) return;
    out.header = HeaderKind::kOther;
    out.header_align_bits = alignment(*t);
    Compiler compiler;
    trace.packet_passed(compiler, s);
    compiler.add(t, Location::Root::kEventHeader, [&](const Type &field, bool) -> std::int32_t {
        if (field.roles & bit(FieldRole::kEventId)) return 0;
        if (!(field.roles & bit(FieldRole::kTimestamp))) return -1;
        out.timestamp_bits.push_back(field.size_bits);
        return static_cast<std::int32_t>(out.timestamp_bits.size());
    });
    if (out.timestamp_bits.empty()) throw Unsupported("events without a time");
    out.header_program = compiler.take(shared);
    out.registers = out.header_program.registers;
}

void compile_packets(Trace &trace, const Shared &shared) {
    std::set<std::int32_t> of_all;
    for (const auto &[id, registers] : shared) of_all.insert(registers.begin(), registers.end());
    auto compile = [&](Compiler &compiler, const TypePtr &structure, Location::Root root, Walk *walk) {
        compiler.add(
            structure, root,
            [](const Type &field, bool) -> std::int32_t {
                for (unsigned r = 0; r < static_cast<unsigned>(FieldRole::kCount); ++r)
                    if (field.roles & bit(static_cast<FieldRole>(r))) {
                        if (field.is_signed)
                            throw Unsupported("a packet's field with a meaning that is no unsigned integer");
                        return static_cast<std::int32_t>(r);
                    }
                return -1;
            },
            walk);
        return compiler.take(of_all);
    };
    if (trace.meta.streams.empty()) throw Unsupported("a trace without stream classes");
    Compiler compiler;
    trace.layout.header = compile(compiler, trace.meta.packet_header, Location::Root::kPacketHeader, nullptr);
    trace.layout.uuid = trace.meta.packet_uuid;
    for (const auto &[id, s] : trace.meta.streams) {
        compiler.passed_before(trace.meta.packet_header, Location::Root::kPacketHeader);
        trace.layout.contexts[id] =
            compile(compiler, s.packet_context, Location::Root::kPacketContext, &trace.layout.context_walks[id]);
    }
}

}  // namespace

std::string Trace::env(const char *name) const {
    auto it = meta.env.find(name);
    return it == meta.env.end() ? std::string() : it->second.text;
}

std::string Trace::host() const {
    if (!host_name.empty()) return host_name;
    const std::string host = env("hostname");
    return host.empty() ? env("host") : host;  // the name in perf's own conversion to CTF
}

const StreamClassDecl &Trace::stream_class(const EventDecl &e) const {
    auto s = meta.streams.find(e.stream_id);
    if (s == meta.streams.end())
        throw Malformed(path + ": event \"" + e.name + "\" is of a stream class that is not declared");
    return s->second;
}

void Trace::packet_passed(Compiler &compiler, const StreamClassDecl &s) const {
    compiler.passed_before(meta.packet_header, Location::Root::kPacketHeader);
    compiler.passed_before(s.packet_context, Location::Root::kPacketContext);
}

void Trace::header_passed(Compiler &compiler, const StreamClassDecl &s) const {
    packet_passed(compiler, s);
    compiler.passed_before(s.event_header, Location::Root::kEventHeader);
}

EventClass &Trace::place(const EventDecl &e, std::uint64_t &ids) {
    StreamClass &cls = classes[e.stream_id];
    if (e.id >= kMaxEventIds) throw Unsupported("an event id of " + std::to_string(e.id));
    if (cls.events.size() <= e.id) {
        ids += e.id + 1 - cls.events.size();
        if (ids > kMaxEventIds) throw Unsupported("event ids that are not dense");
        cls.events.resize(static_cast<std::size_t>(e.id) + 1);
    }
    EventClass &event = cls.events[static_cast<std::size_t>(e.id)];
    event.known = true;
    return event;
}

// The clock's last value with a time in 64 bits, from the clock's origin: babeltrace2 reads no later value either.
static std::uint64_t last_time_of(const ClockDecl &clock) {
    using Wide = __int128;
    constexpr Wide kSecond = 1'000'000'000, kLast = std::numeric_limits<std::int64_t>::max();
    const Wide offset_ns = Wide{clock.offset_s} * kSecond + Wide{clock.offset} * kSecond / clock.frequency;
    const Wide left = kLast - std::max<Wide>(offset_ns, 0);
    if (left < 0) return 0;
    const Wide cycles = left / kSecond * clock.frequency + left % kSecond * clock.frequency / kSecond;
    return static_cast<std::uint64_t>(std::min<Wide>(cycles, ~std::uint64_t{0}));
}

static void note_clocks(const TypePtr &type, std::set<std::string> &out) {
    if (!type) return;
    if (!type->clock.empty()) out.insert(type->clock);
    note_clocks(type->element, out);
    for (const auto &m : type->members) note_clocks(m.type, out);
}

// All times are of one clock: among several, the clock that headers are mapped to. A trace without a clock counts in
// ns.
static void keep_the_clock(Metadata &meta) {
    if (meta.clocks.empty()) meta.clocks[""] = ClockDecl{};
    if (meta.clocks.size() == 1) return;
    std::set<std::string> used;
    for (const auto &[id, s] : meta.streams)
        for (const TypePtr &type : {s.event_header, s.packet_context}) note_clocks(type, used);
    const auto only = used.size() == 1 ? meta.clocks.find(*used.begin()) : meta.clocks.end();
    if (only == meta.clocks.end()) throw Unsupported(std::to_string(meta.clocks.size()) + " clocks in one trace");
    meta.clocks = {*only};
}

// Compiles all fields of an event without use: throws Unsupported before any reading.
static Shared check_fields(const Trace &trace) {
    const Compiler::SlotOf none = [](const Type &, bool) { return -1; };
    Shared shared;
    for (const EventDecl &e : trace.meta.events) {
        const auto s = trace.meta.streams.find(e.stream_id);
        if (s == trace.meta.streams.end()) continue;
        if (e.id >= kMaxEventIds) throw Unsupported("an event id of " + std::to_string(e.id));
        Compiler compiler;
        trace.header_passed(compiler, s->second);
        compiler.add(s->second.event_context, Location::Root::kCommonContext, none);
        compiler.add(e.context, Location::Root::kSpecificContext, none);
        compiler.add(e.payload, Location::Root::kPayload, none);
        shared[e.stream_id].insert(compiler.read_before().begin(), compiler.read_before().end());
    }
    return shared;
}

// LTTng wrote events later than their packet's end until 2.11 (babeltrace2 2.0, src/plugins/ctf/fs-src/fs.c,
// is_tracer_affected_by_lttng_event_after_packet_bug). For other tracers this is unknown.
static bool holds_events(const Trace &trace) {
    if (trace.env("tracer_name").rfind("lttng", 0) != 0) return false;
    const long major = std::strtol(trace.env("tracer_major").c_str(), nullptr, 10);
    const long minor = std::strtol(trace.env("tracer_minor").c_str(), nullptr, 10);
    return major > 2 || (major == 2 && minor >= 11);
}

std::unique_ptr<Trace> compile_trace(const std::string &metadata) {
    auto trace = std::make_unique<Trace>();
    trace->meta = parse_metadata(metadata_text(metadata));
    keep_the_clock(trace->meta);
    trace->frequency = trace->clock().frequency;
    trace->layout.last_time = last_time_of(trace->clock());
    trace->layout.holds_events = holds_events(*trace);
    Shared shared = check_fields(*trace);
    compile_packets(*trace, shared);
    for (const auto &[id, s] : trace->meta.streams) compile_header(*trace, s, shared[id], trace->classes[id]);
    return trace;
}

std::vector<std::string> files_of(const std::string &path) {
    std::vector<std::string> out;
    for (const auto &entry : fs::directory_iterator(path)) {
        const std::string name = entry.path().filename().string();
        if (entry.is_regular_file() && name != "metadata" && name[0] != '.') out.push_back(entry.path().string());
    }
    std::sort(out.begin(), out.end());
    return out;
}

std::unique_ptr<Trace> load_trace(const std::string &path) {
    try {
        auto trace = compile_trace(read_file(fs::path(path) / "metadata"));
        trace->path = path;
        for (const std::string &file : files_of(path)) trace->files.push_back({file, fs::file_size(file)});
        return trace;
    } catch (const Unsupported &e) {
        throw Unsupported(path + ": " + e.what());
    } catch (const Malformed &e) {
        throw Malformed(path + ": " + e.what());
    }
}

}  // namespace opline::ctf
