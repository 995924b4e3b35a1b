// SPDX-License-Identifier: MIT
// The native reader on traces that no tracer wrote: small ones made here, wrong in one place each.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "counting_consumer.hpp"
#include "ctf/metadata/types.hpp"
#include "ctf/reader.hpp"
#include "scratch_trace.hpp"

using namespace opline;

namespace {

const char *const kHead =
    "/* CTF 1.8 */\n"
    "typealias integer { size = 8; align = 8; signed = false; } := uint8_t;\n"
    "typealias integer { size = 16; align = 8; signed = false; } := uint16_t;\n"
    "typealias integer { size = 32; align = 8; signed = false; } := uint32_t;\n"
    "typealias integer { size = 64; align = 8; signed = false; } := uint64_t;\n"
    "typealias integer { size = 5; align = 1; signed = false; } := uint5_t;\n"
    "typealias integer { size = 27; align = 1; signed = false; } := uint27_t;\n"
    "typealias integer { size = 8; align = 8; signed = false; encoding = UTF8; } := char;\n"
    "trace { major = 1; minor = 8; byte_order = le; packet.header := struct { uint32_t magic; uint32_t stream_id; "
    "uint64_t stream_instance_id; }; };\n"
    "env { domain = \"ust\"; };\n"
    "clock { name = \"monotonic\"; freq = 1000000000; };\n"
    "struct header { enum : uint5_t { compact = 0 ... 30, extended = 31 } id; variant <id> { struct { uint27_t "
    "timestamp; } compact;\n"
    "  struct { uint32_t id; uint64_t timestamp; } extended; } v; } align(8);\n";
const char *const kStream =
    "stream { id = 0; event.header := struct header; packet.context := struct { uint64_t timestamp_begin; uint64_t "
    "timestamp_end;\n"
    "  uint64_t content_size; uint64_t packet_size; uint64_t packet_seq_num; uint64_t events_discarded; uint32_t "
    "cpu_id; }; };\n";

std::string event_of(const std::string &fields) {
    return "event { name = \"t:e\"; id = 0; stream_id = 0; fields := struct { " + fields + " }; };\n";
}

std::string metadata_of(const std::string &fields, const std::string &before = "") {
    return kHead + before + kStream + event_of(fields);
}

template <class T>
void put(std::string &out, T value) {
    for (std::size_t i = 0; i < sizeof value; ++i) out += static_cast<char>(static_cast<std::uint64_t>(value) >> 8 * i);
}

constexpr std::size_t kHeaderBytes = 16 + 6 * 8 + 4;

// A packet with `events` as its bytes; sizes as wanted (bits), else the right ones.
std::string packet(const std::string &events, std::uint64_t sequence = 0, std::int64_t content = -1,
                   std::int64_t size = -1, std::uint64_t instance = 0) {
    std::string out;
    const auto right = static_cast<std::int64_t>((kHeaderBytes + events.size()) * 8);
    put(out, std::uint32_t{0xc1fc1fc1});
    put(out, std::uint32_t{0});
    put(out, instance);
    put(out, std::uint64_t{100});
    put(out, std::uint64_t{200});
    put(out, static_cast<std::uint64_t>(content < 0 ? right : content));
    put(out, static_cast<std::uint64_t>(size < 0 ? right : size));
    put(out, sequence);
    put(out, std::uint64_t{0});
    put(out, std::uint32_t{0});
    return out + events;
}

// An event of id 0 at clock value `time`.
std::string event(std::uint32_t time, const std::string &payload) {
    std::string out;
    put(out, time << 5);
    return out + payload;
}

struct Result {
    CountingConsumer seen;
    ctf::ReadLosses losses;
};

Result read(const std::string &metadata, const std::string &stream) {
    ScratchTrace trace;
    trace.write("metadata", metadata);
    trace.write("ch_0", stream);
    ctf::Reader reader({trace.path()});
    Result out;
    reader.open(out.seen);
    while (reader.run(1000)) {}
    out.losses = reader.losses();
    return out;
}

}  // namespace

TEST_CASE("a sound trace") {
    std::string payload;
    put(payload, std::uint32_t{7});
    auto r = read(metadata_of("uint32_t x;"), packet(event(100, payload) + event(150, payload)));
    CHECK(r.seen.count == 2);
    CHECK(r.seen.sum == 14);
    CHECK(r.seen.last_ns == 150);
    CHECK(r.seen.finished);
    CHECK(r.losses.messages.empty());
}

TEST_CASE("a packet of no size ends the file, counted") {
    std::string none(4096, '\0');  // no packet header at all: everything that could be wrong is 0
    const std::string bare =
        "/* CTF 1.8 */\ntypealias integer { size = 64; align = 8; signed = false; } := uint64_t;\n"
        "typealias integer { size = 32; align = 8; signed = false; } := uint32_t;\n"
        "typealias integer { size = 5; align = 1; signed = false; } := uint5_t;\n"
        "typealias integer { size = 27; align = 1; signed = false; } := uint27_t;\n"
        "trace { major = 1; minor = 8; byte_order = le; packet.header := struct { }; };\nclock { name = \"c\"; };\n"
        "struct header { enum : uint5_t { compact = 0 ... 30, extended = 31 } id; variant <id> { struct { uint27_t "
        "timestamp; } compact;\n"
        "  struct { uint32_t id; uint64_t timestamp; } extended; } v; } align(8);\n"
        "stream { id = 0; event.header := struct header; packet.context := struct { }; };\n";
    auto r = read(bare + event_of("uint32_t x;"), none);
    CHECK(r.seen.finished);
    auto zero = read(metadata_of("uint32_t x;"), packet("", 0, 0, 0) + packet(event(100, "abcd")));
    CHECK(zero.seen.count == 0);
    CHECK(zero.losses.malformed_packets == 1);
}

TEST_CASE("sizes that lie give losses") {
    const std::string one = event(100, "abcd");
    auto longer = read(metadata_of("uint32_t x;"), packet(one, 0, 1 << 20, 1 << 20));
    CHECK(longer.seen.count == 1);
    CHECK(longer.losses.truncated_packets == 1);
    CHECK(longer.seen.damages == 1);
    auto huge = read(metadata_of("uint32_t x;"), packet(one, 0, -1, std::int64_t{1} << 62));
    CHECK(huge.seen.count == 1);
    auto shorter = read(metadata_of("uint32_t x;"), packet(one, 0, 8, 16));
    CHECK(shorter.seen.count == 0);
    CHECK(shorter.losses.malformed_packets == 1);
}

TEST_CASE("a packet that begins or ends at no time is not read, and neither is what follows") {
    const std::string one = packet(event(150, "abcd"));
    constexpr std::size_t kBegin = 16, kEnd = 24;
    auto with = [&](std::size_t at, std::uint64_t time) {
        std::string bytes, out = one;
        put(bytes, time);
        return out.replace(at, sizeof time, bytes) + one;
    };
    const std::string far = metadata_of("uint32_t x;"),
                      since_1970 = std::string(far).replace(far.find("freq"), 0, "offset_s = 1795262112; ");
    const std::uint64_t last = (std::uint64_t{1} << 63) - 1;
    for (const std::size_t at : {kBegin, kEnd}) {
        CHECK(read(far, with(at, last + 1)).losses.malformed_packets == 1);
        CHECK(read(far, with(at, last + 1)).seen.count == 0);
        CHECK(read(far, with(at, last)).seen.count == 2);
        CHECK(read(since_1970, with(at, last)).seen.count == 0);
        CHECK(read(since_1970, with(at, last - 1795262112'000000000)).seen.count == 2);
    }
}

TEST_CASE("missing packets are told; a packet before its predecessor is counted") {
    const std::string one = event(100, "abcd");
    auto r = read(metadata_of("uint32_t x;"), packet(one, 4) + packet(one, 7));
    CHECK(r.seen.lost == 2);
    CHECK(r.losses.packets_out_of_order == 1);
    CHECK(r.seen.count == 2);
}

TEST_CASE("alignments that are none are not recognised") {
    for (const char *align : {"0", "3", "8192", "4294967296"}) {
        CAPTURE(align);
        const std::string text = std::string("struct s { uint32_t x; } align(") + align + ");\n";
        CHECK_THROWS_AS(ctf::parse_metadata(metadata_of("struct s x;", text)), ctf::Unsupported);
    }
    CHECK_THROWS_AS(ctf::parse_metadata(metadata_of("floating_point { exp_dig = 11; mant_dig = 53; align = 0; } x;")),
                    ctf::Unsupported);
    CHECK_THROWS_AS(ctf::parse_metadata(metadata_of("integer { size = 4294967304; } x;")), ctf::Unsupported);
}

TEST_CASE("a few lines can't describe a type without bound") {
    std::string doubling = "struct s0 { uint8_t a; };\n";
    for (int i = 1; i < 40; ++i) {
        const auto last = std::to_string(i - 1);
        doubling += "struct s" + std::to_string(i) + " { struct s" + last + " a; struct s" + last + " b; };\n";
    }
    CHECK_THROWS_AS(ctf::parse_metadata(metadata_of("struct s39 x;", doubling)), ctf::Unsupported);
    std::string nested, dimensions;
    for (int i = 0; i < 100'000; ++i) nested += "struct { typealias ";
    for (int i = 0; i < 100'000; ++i) dimensions += "[1]";
    CHECK_THROWS_AS(ctf::parse_metadata(kHead + nested), ctf::Unsupported);
    CHECK_THROWS_AS(ctf::parse_metadata(metadata_of("uint8_t x" + dimensions + ";")), ctf::Unsupported);
}

TEST_CASE("names without bound are not recognised") {
    const std::string name(400, 'n');
    const std::string one = packet(event(100, "abcd"));
    CHECK(read(metadata_of("uint32_t " + name + ";"), one).seen.count == 1);
    CHECK_THROWS_AS(read(metadata_of("struct { uint32_t " + name + "; } " + name + ";"), one), ctf::Unsupported);
}

TEST_CASE("event ids far apart are not recognised") {
    ScratchTrace trace;
    std::string text = std::string(kHead) + kStream;
    text += "event { name = \"t:e\"; id = 1000000; stream_id = 0; fields := struct { uint8_t x; }; };\n";
    trace.write("metadata", text);
    trace.write("ch_0", packet(""));
    ctf::Reader reader({trace.path()});
    CountingConsumer seen;
    CHECK_THROWS_AS(reader.open(seen), ctf::Unsupported);
}

TEST_CASE("arrays without bound: too long for the packet, or of elements without size") {
    const std::string one = event(100, std::string(16, '\1'));
    auto length = read(metadata_of("uint64_t n; uint8_t x[n];"), packet(one));
    CHECK(length.seen.count == 0);
    CHECK(length.losses.truncated_packets == 1);
    auto empty =
        read(metadata_of("uint8_t n; struct { } x[4000000000][4000000000][4000000000];"), packet(event(100, "a")));
    CHECK(empty.seen.finished);
    CHECK_THROWS_AS(read(metadata_of("char x[4294967295]; char y[100];"), packet(one)), ctf::Unsupported);
}

TEST_CASE("an enumeration up to the greatest integer") {
    const std::string fields = "enum : uint64_t { a = 9223372036854775807, b } x;";
    std::string payload;
    put(payload, std::uint64_t{3});
    CHECK(read(metadata_of(fields), packet(event(100, payload))).seen.sum == 3);
}

namespace {

// time, stream, which of the stream, its text
using Seen = std::tuple<std::int64_t, std::uint32_t, std::uint64_t, std::string>;

// Keeps what it is told: events, and of packets lost after which event of their stream.
class KeepingConsumer final : public CountingConsumer {
  public:
    void event(const Event &e) override {
        CountingConsumer::event(e);
        seen.emplace_back(e.ts_ns, e.stream, e.slots[0].bits(), std::string(e.slots[1].str()));
    }
    void discarded(std::uint32_t stream, std::int64_t, std::int64_t, std::uint64_t, bool) override {
        gaps.emplace_back(
            stream, std::count_if(seen.begin(), seen.end(), [&](const Seen &s) { return std::get<1>(s) == stream; }));
    }
    std::vector<Seen> seen;
    std::vector<std::pair<std::uint32_t, std::ptrdiff_t>> gaps;
};

}  // namespace

TEST_CASE("streams are merged by time, then by their rank, whether they take turns or not, in one thread or two") {
    std::mt19937 random(1);
    auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
    for (std::uint32_t streams : {1u, 2u, 3u, 5u, 40u}) {
        ScratchTrace trace;
        trace.write("metadata", metadata_of("uint32_t x; string text; uint16_t unwanted;"));
        std::vector<Seen> expected;
        std::vector<std::pair<std::uint32_t, std::ptrdiff_t>> gaps;
        for (std::uint32_t i = 0; i < streams; ++i) {
            std::string bytes;
            std::uint64_t sequence = 0;
            std::uint32_t time = 100, number = 0;
            const std::uint32_t most = 1 + below(1500);
            while (number < most) {
                std::string events;
                if (sequence > 0 && below(4) == 0) {
                    ++sequence;
                    gaps.emplace_back(i, number);
                }
                const std::uint32_t long_run = below(3);
                for (std::uint32_t left = 1 + below(200); left > 0; --left) {
                    time += long_run == 0 ? below(2) : below(4) == 0 ? below(400) : below(3);
                    std::string payload;
                    put(payload, number);
                    const std::string text(below(3) == 0 ? below(70) : 5, 'a');
                    payload += text + '\0' + "zz";
                    events += event(time, payload);
                    expected.emplace_back(time, i, number++, text);
                }
                bytes += packet(events, sequence++, -1, -1, i);
            }
            trace.write("ch_" + std::to_string(i), bytes);
        }
        std::stable_sort(expected.begin(), expected.end(), [](const Seen &a, const Seen &b) {
            return std::tie(std::get<0>(a), std::get<1>(a)) < std::tie(std::get<0>(b), std::get<1>(b));
        });
        for (unsigned threads : {1u, 2u})
            for (std::uint64_t at_once : {1u, 700u, 1000000u}) {
                ctf::Reader reader({trace.path()});
                KeepingConsumer consumer;
                reader.open(consumer, threads);
                while (reader.run(at_once)) {}
                CHECK(consumer.finished);
                CHECK(consumer.seen == expected);
                std::sort(consumer.gaps.begin(), consumer.gaps.end());
                CHECK(consumer.gaps == gaps);
                CHECK(reader.losses().truncated_packets == 0);
            }
    }
}

// Wants the fields whose names begin with 'w', and keeps their values.
struct Keeper : CountingConsumer {
    ClassPlan add_class(const ClassDecl &decl) override {
        ClassPlan plan;
        plan.id = static_cast<std::uint32_t>(counts.size());
        for (std::uint32_t i = 0; i < decl.fields.size(); ++i)
            if (decl.fields[i].name[0] == 'w') plan.wanted.push_back(i);
        counts.push_back(plan.wanted.size());
        return plan;
    }
    void event(const Event &e) override {
        values.push_back(e.cls);
        values.push_back(static_cast<std::uint64_t>(e.ts_ns));
        for (std::size_t i = 0; i < counts[e.cls]; ++i) values.push_back(e.slots[i].bits());
    }
    std::vector<std::size_t> counts;
    std::vector<std::uint64_t> values;
};

TEST_CASE("events that repeat fields of the one before have their own values") {
    const std::uint64_t seed = 20240611;
    std::mt19937_64 random(seed);
    auto below = [&](std::uint64_t n) { return random() % n; };
    for (int round = 0; round < 1000; ++round) {
        CAPTURE(round);
        struct Field {
            std::uint32_t bytes;  // 0: a string
            bool wanted, is_signed;
        };
        std::vector<std::vector<Field>> classes(1 + below(3));
        for (auto &fields : classes) {
            if (&fields != &classes[0] && below(2) == 0) {
                fields = classes[0];  // often all are laid out alike
                // but for where they end
                for (auto more = below(3); more-- != 0;) fields.push_back({below(2) == 0 ? 0u : 4u, false, false});
            } else {
                fields.resize(1 + below(7));
                for (auto &f : fields) f = {below(8) == 0 ? 0u : 1u << below(4), below(2) == 0, below(3) == 0};
            }
            for (auto &f : fields) f.wanted = f.wanted && f.bytes != 0;
        }
        std::string metadata = kHead;
        for (const int bits : {8, 16, 32, 64})
            metadata += "typealias integer { size = " + std::to_string(bits) + "; align = 8; signed = true; } := int" +
                        std::to_string(bits) + "_t;\n";
        metadata += kStream;
        for (std::size_t c = 0; c < classes.size(); ++c) {
            std::string fields;
            for (std::size_t k = 0; k < classes[c].size(); ++k) {
                const Field &f = classes[c][k];
                const std::string name = (f.wanted ? "w" : "u") + std::to_string(k);
                if (f.bytes == 0) fields += "string { encoding = UTF8; } " + name + "; ";
                else fields += (f.is_signed ? "int" : "uint") + std::to_string(8 * f.bytes) + "_t " + name + "; ";
            }
            metadata += "event { name = \"t:e" + std::to_string(c) + "\"; id = " + std::to_string(c) +
                        "; stream_id = 0; fields := struct { " + fields + "}; };\n";
        }
        std::string events;
        std::vector<std::uint64_t> expected;
        const std::uint64_t values[] = {0, 1, 0x8181818181818181, 0x0101010101010101};
        for (std::uint32_t i = 0, n = static_cast<std::uint32_t>(below(200)); i < n; ++i) {
            const std::size_t c = below(classes.size());
            put(events, ((100 + i) << 5) | static_cast<std::uint32_t>(c));
            expected.insert(expected.end(), {c, 100 + i});
            for (const Field &f : classes[c]) {
                if (f.bytes == 0) {
                    events += std::string(below(3) * 20, 'x') + '\0';
                    continue;
                }
                const std::uint64_t v = values[below(16) == 0 ? below(4) : 1],
                                    mask = ~std::uint64_t{0} >> (64 - 8 * f.bytes);
                for (std::uint32_t k = 0; k < f.bytes; ++k) events += static_cast<char>(v >> 8 * k);
                const bool negative = f.is_signed && (v & (mask ^ (mask >> 1))) != 0;
                if (f.wanted) expected.push_back(negative ? v | ~mask : v & mask);
            }
        }
        ScratchTrace trace;
        trace.write("metadata", metadata);
        trace.write("ch_0", packet(events));
        ctf::Reader reader({trace.path()});
        Keeper seen;
        reader.open(seen);
        while (reader.run(1000)) {}
        CHECK(reader.losses().messages.empty());
        CHECK(seen.values == expected);
    }
}

namespace {

// Keeps the events' times; a field `ktime` is its event's own time.
class Times : public CountingConsumer {
  public:
    ClassPlan add_class(const ClassDecl &decl) override {
        ClassPlan plan = CountingConsumer::add_class(decl);
        if (decl.fields.front().name == "ktime") plan.time_slot = 0;
        return plan;
    }
    void event(const Event &e) override { times.push_back(e.ts_ns); }
    std::vector<std::int64_t> times;
};

}  // namespace

TEST_CASE("an event's own time is its time, and that of those without one behind it, whatever their header") {
    const std::string other = "event { name = \"t:f\"; id = 1; stream_id = 0; fields := struct { uint32_t x; }; };\n";
    auto own = [](std::uint32_t clock, std::uint64_t ktime) {
        std::string payload;
        put(payload, ktime);
        return event(clock, payload);
    };
    auto without = [](std::uint32_t clock) {
        std::string out;
        put(out, clock << 5 | 1);
        put(out, std::uint32_t{7});
        return out;
    };
    std::string extended("\x1f");
    put(extended, std::uint32_t{1});
    put(extended, std::uint64_t{140});
    put(extended, std::uint32_t{7});
    const std::string events = without(100) + own(110, 50) + without(120) + own(130, 70) + extended + without(150);
    for (const std::string hz : {"1000000000", "1000000"}) {
        std::string metadata = metadata_of("uint64_t ktime;") + other;
        metadata.replace(metadata.find("1000000000"), 10, hz);
        ScratchTrace trace;
        trace.write("metadata", metadata);
        trace.write("ch_0", packet(events));
        Times seen;
        ctf::Reader reader({trace.path()});
        reader.open(seen);
        while (reader.run(1000)) {}
        const std::int64_t first_ns = hz.size() == 10 ? 100 : 100'000;
        CHECK(seen.times == std::vector<std::int64_t>{first_ns, 50, 50, 70, 70, 70});
    }
}
