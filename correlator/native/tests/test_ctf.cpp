// SPDX-License-Identifier: MIT
// The native reader on traces that no tracer wrote: small ones made here, wrong in one place each.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>

#include "counting_sink.hpp"
#include "ctf/metadata/types.hpp"
#include "ctf/reader.hpp"
#include "ctf_maker.hpp"
#include "scratch_trace.hpp"

using namespace opline;

namespace {

struct Result {
    CountingSink seen;
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
    const std::string one = packet(event(150, "abcd")), next = packet(event(150, "abcd"), 1);
    constexpr std::size_t kBegin = 16, kEnd = 24;
    auto with = [&](std::size_t at, std::uint64_t time) {
        std::string bytes, out = one;
        put(bytes, time);
        return out.replace(at, sizeof time, bytes) + next;
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

TEST_CASE("an event whose clock is at no time is read, and so is what comes behind it") {
    std::string damaged(1, '\x1f');  // the header with all 64 bits of the clock
    put(damaged, std::uint32_t{0});
    put(damaged, std::uint64_t{1} << 63);
    const auto r =
        read(metadata_of("uint32_t x;"), packet(event(110, "abcd") + damaged + "abcd") + packet(event(150, "abcd"), 1));
    CHECK(r.seen.count == 3);
    CHECK(r.seen.finished);
}

TEST_CASE("missing packets are told; a packet before its predecessor is counted") {
    const std::string one = event(100, "abcd");
    auto r = read(metadata_of("uint32_t x;"), packet(one, 4) + packet(event(110, "abce"), 7));
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

TEST_CASE("metadata that is cut off anywhere is refused, if it does not stand by itself") {
    const std::string whole = metadata_of("enum : uint8_t { a = 'a', quote = '\\'', line = '\\n' } x;",
                                          "typealias integer { size = 0x20; } := word; // to the end\n"
                                          "env { name = \"a text with \\\"\"; };  /* between */\n");
    CHECK_NOTHROW(ctf::parse_metadata(whole));
    for (std::size_t size = 0; size < whole.size(); ++size) {
        for (const char *end : {"", "'", "'\\", "'a", "\"", "\"\\", "/", "/*", "//", "0x", ".", ":"}) {
            CAPTURE(size);
            CAPTURE(end);
            try {
                ctf::parse_metadata(whole.substr(0, size) + end);
            } catch (const ctf::Unsupported &) {
            } catch (const ctf::Malformed &) {}
        }
    }
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

TEST_CASE("a variant without a tag is not recognised") {
    const std::string variant = " { struct { uint32_t a; } one; struct { uint32_t a; } other; } v;";
    CHECK_THROWS_AS(ctf::parse_metadata(metadata_of("enum : uint8_t { one, other } x; variant" + variant)),
                    ctf::Unsupported);
    CHECK_THROWS_AS(ctf::parse_metadata(metadata_of("enum : uint8_t { one, other } x; variant named" + variant)),
                    ctf::Unsupported);
    CHECK_NOTHROW(ctf::parse_metadata(metadata_of("enum : uint8_t { one, other } x; variant <x>" + variant)));
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
    CHECK_THROWS_AS(ctf::Reader({trace.path()}), ctf::Unsupported);
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
