// SPDX-License-Identifier: MIT
// The native reader on CTF 2: field classes, locations and fragments that no recorded trace has, each in a trace of its
// own.
#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "ctf/metadata/types.hpp"
#include "ctf/reader.hpp"
#include "scratch_trace.hpp"

using namespace opline;

namespace {

std::string replaced(std::string text) {
    for (auto &c : text)
        if (c == '\'') c = '"';
    return text;
}

// Fragments with ' for ", each after its record separator.
std::string sequence(const std::vector<std::string> &fragments) {
    std::string out;
    for (const auto &f : fragments) out += '\x1e' + replaced(f) + "\n";
    return out;
}

const char *const kPreamble =
    "{'type': 'preamble', 'version': 2, 'uuid': [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]}";
const char *const kByte =
    "{'type': 'field-class-alias', 'name': 'u8', 'field-class': {'type': 'fixed-length-unsigned-integer', 'length': 8, "
    "'byte-order': 'little-endian', 'alignment': 8}}";
const char *const kTrace =
    "{'type': 'trace-class', 'uid': 'me', 'environment': {'hostname': 'here', 'domain': 'ust', 'tracer_major': 2}, "
    "'packet-header-field-class': {'type': 'structure', 'member-classes': ["
    "{'name': 'the magic', 'field-class': {'type': 'fixed-length-unsigned-integer', 'length': 32, 'byte-order': "
    "'little-endian', 'roles': ['packet-magic-number']}},"
    "{'name': 'whose', 'field-class': {'type': 'static-length-blob', 'length': 16, 'roles': ['metadata-stream-uuid']}},"
    "{'name': 'class', 'field-class': {'type': 'variable-length-unsigned-integer', 'roles': "
    "['data-stream-class-id']}}]}}";
const char *const kClock =
    "{'type': 'clock-class', 'id': 'c', 'name': 'ticks', 'uid': 'boot', 'frequency': 1000000, 'origin': 'unix-epoch', "
    "'offset-from-origin': {'seconds': -3, 'cycles': 7}, 'precision': 2, 'accuracy': 5}";
const char *const kStream =
    "{'type': 'data-stream-class', 'id': 300, 'default-clock-class-id': 'c', 'packet-context-field-class': {'type': "
    "'structure', 'member-classes': ["
    "{'name': 'bits', 'field-class': {'type': 'fixed-length-unsigned-integer', 'length': 16, 'byte-order': "
    "'little-endian', 'alignment': 8, 'roles': ['packet-content-length']}}]},"
    "'event-record-header-field-class': {'type': 'structure', 'member-classes': ["
    "{'name': 'when', 'field-class': {'type': 'variable-length-unsigned-integer', 'roles': "
    "['default-clock-timestamp']}},"
    "{'name': 'what', 'field-class': {'type': 'fixed-length-unsigned-integer', 'length': 8, 'byte-order': "
    "'little-endian', 'roles': ['event-record-class-id']}}]}}";

std::string event_class(const std::string &members, const std::string &extra = "") {
    return "{'type': 'event-record-class', 'id': 5, 'data-stream-class-id': 300, 'name': 'e'" + extra +
           ", 'payload-field-class': {'type': 'structure', 'member-classes': [" + members + "]}}";
}
std::string metadata_of(const std::string &members, const std::string &extra = "") {
    return sequence({kPreamble, kByte, kTrace, kClock, kStream, event_class(members, extra)});
}
std::string member(const std::string &name, const std::string &field_class) {
    return "{'name': '" + name + "', 'field-class': " + field_class + "}";
}
std::string bits(const char *type, int length, const char *order, const char *extra = "") {
    return std::string("{'type': '") + type + "', 'length': " + std::to_string(length) + ", 'byte-order': '" + order +
           "'" + extra + "}";
}

// One packet of stream class 300 (LEB128: ac 02) with one event: time 2, id 5, then `payload`.
std::string packet(const std::string &payload, const std::string &time = "\x02") {
    std::string out("\xc1\x1f\xfc\xc1", 4);
    for (char i = 1; i <= 16; ++i) out += i;
    out += "\xac\x02";
    const std::string body = time + "\x05" + payload;
    const auto size = (out.size() + 2 + body.size()) * 8;
    out += static_cast<char>(size & 0xff);
    out += static_cast<char>(size >> 8);
    return out + body;
}

// Every field as text: "name=value", absent ones as "name".
class Recorder : public EventSink {
  public:
    ClassPlan add_class(const ClassDecl &decl) override {
        ClassPlan plan;
        plan.id = static_cast<std::uint32_t>(classes_.size());
        for (std::uint32_t i = 0; i < decl.fields.size(); ++i) plan.wanted.push_back(i);
        classes_.push_back(decl);
        return plan;
    }
    std::uint32_t add_stream(const StreamDecl &d) override {
        host = d.host;
        return 0;
    }
    void events(const Event *first, const Event *past) override {
        for (; first != past; ++first) event(*first);
    }
    void event(const Event &e) {
        times.push_back(e.ts_ns);
        std::string line;
        const auto &fields = classes_[e.cls].fields;
        for (std::size_t i = 0; i < fields.size(); ++i) {
            const Slot &s = e.slots[i];
            line += (i ? " " : "") + fields[i].name;
            if (s.kind == Slot::Kind::kUnsigned) line += "=" + std::to_string(s.u);
            if (s.kind == Slot::Kind::kSigned) line += "=" + std::to_string(s.i);
            if (s.kind == Slot::Kind::kReal) line += "=" + std::to_string(s.r);
            if (s.kind == Slot::Kind::kString) line += "=\"" + std::string(s.str()) + "\"";
        }
        lines.push_back(line);
    }
    void gap(const Gap &) override {}
    bool finish() override { return true; }
    std::vector<std::string> lines;
    std::vector<std::int64_t> times;
    std::string host;

  private:
    std::vector<ClassDecl> classes_;
};

struct Result {
    Recorder seen;
    ctf::ReadLosses losses;
    std::string environment;
    std::string line() const {
        return seen.lines.size() == 1 ? seen.lines[0] : std::to_string(seen.lines.size()) + " events";
    }
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
    out.environment = reader.environment_json();
    return out;
}

std::string bytes(std::initializer_list<int> list) {
    std::string out;
    for (int b : list) out += static_cast<char>(b);
    return out;
}

}  // namespace

TEST_CASE("times, clock and environment") {
    auto r = read(metadata_of(member("x", "'u8'")), packet(bytes({7})));
    CHECK(r.line() == "x=7");
    CHECK(r.seen.times == std::vector<std::int64_t>{2000});  // of a clock of 1 MHz
    CHECK(r.seen.host == "here");
    CHECK(r.environment.find("\"offset_s\":-3") != std::string::npos);
    CHECK(r.environment.find("\"offset_cycles\":7") != std::string::npos);
    CHECK(r.environment.find("\"tracer_major\":\"2\"") != std::string::npos);
    CHECK(r.losses.messages.empty());
}

TEST_CASE("a number that says it is the uuid is no address") {
    std::string numbered = kTrace;
    const std::string role = "['data-stream-class-id']";
    numbered.replace(numbered.find(role), role.size(), "['data-stream-class-id', 'metadata-stream-uuid']");
    const auto metadata = sequence({kPreamble, kByte, numbered, kClock, kStream, event_class(member("x", "'u8'"))});
    auto r = read(metadata, packet(bytes({7})));
    CHECK(r.seen.lines.empty());
    REQUIRE(r.losses.messages.size() == 1);
    CHECK(r.losses.messages[0].find("its uuid is another trace's") != std::string::npos);
}

TEST_CASE("a timestamp of variable length wraps at the bits that it has") {
    const std::string one = bytes({7}), id = "\x05";
    // 300 (14 bits), then 2 (7 bits): the low 7 bits of 300 are 44, so 2 is one round later
    auto r = read(metadata_of(member("x", "'u8'")), packet(one + "\x02" + id + one, "\xac\x02"));
    CHECK(r.seen.times == std::vector<std::int64_t>{300'000, 386'000});
}

TEST_CASE("integers of any length, byte order and bit order") {
    const std::string fields =
        member("a", bits("fixed-length-unsigned-integer", 3, "little-endian")) + "," +
        member("b", bits("fixed-length-signed-integer", 5, "little-endian")) + "," +
        member("c", bits("fixed-length-unsigned-integer", 4, "big-endian")) + "," +
        member("d", bits("fixed-length-unsigned-integer", 12, "big-endian")) + "," +
        member("e", bits("fixed-length-unsigned-integer", 8, "little-endian", ", 'bit-order': 'last-to-first'")) + "," +
        member("f", bits("fixed-length-signed-integer", 16, "big-endian",
                         ", 'alignment': 8, 'bit-order': 'first-to-last'")) +
        "," +
        member("g", bits("fixed-length-unsigned-integer", 16, "big-endian",
                         ", 'alignment': 8, 'preferred-display-base': 16"));
    // a = 0b101, b = 0b11110 → -2; c = 0xa, d = 0xbcd; e: 0b00000001 read from the other end = 128; f: the bits of
    // 0x8001 turned; g = 0x1234
    auto r = read(metadata_of(fields), packet(bytes({0xf5, 0xab, 0xcd, 0x01, 0x80, 0x01, 0x12, 0x34})));
    CHECK(r.line() == "a=5 b=-2 c=10 d=3021 e=128 f=-32767 g=4660");
}

TEST_CASE("booleans, bit arrays and bit maps") {
    const std::string fields = member("no", bits("fixed-length-boolean", 8, "little-endian", ", 'alignment': 8")) +
                               "," + member("yes", bits("fixed-length-boolean", 8, "big-endian")) + "," +
                               member("bits", bits("fixed-length-bit-array", 4, "little-endian")) + "," +
                               member("map", bits("fixed-length-bit-map", 4, "little-endian",
                                                  ", 'flags': {'low': [[0, 1]], 'high': [[3, 3]]}"));
    CHECK(read(metadata_of(fields), packet(bytes({0, 0x40, 0xb6}))).line() == "no=0 yes=1 bits=6 map=11");
}

TEST_CASE("floating-point numbers at any bit") {
    const float f = -1.5f;
    std::uint32_t u;
    std::memcpy(&u, &f, 4);
    std::string big;
    for (int i = 3; i >= 0; --i) big += static_cast<char>(u >> 8 * i);
    std::uint64_t at3 = static_cast<std::uint64_t>(u) << 3 | 5;
    std::string shifted;
    for (int i = 0; i < 5; ++i) shifted += static_cast<char>(at3 >> 8 * i);
    CHECK(read(metadata_of(member("x", bits("fixed-length-floating-point-number", 32, "big-endian"))), packet(big))
              .line() == "x=-1.500000");
    const std::string fields = member("a", bits("fixed-length-unsigned-integer", 3, "little-endian")) + "," +
                               member("x", bits("fixed-length-floating-point-number", 32, "little-endian"));
    CHECK(read(metadata_of(fields), packet(shifted)).line() == "a=5 x=-1.500000");
}

TEST_CASE("integers of variable length") {
    const std::string fields =
        member("u", "{'type': 'variable-length-unsigned-integer'}") + "," +
        member("s", "{'type': 'variable-length-signed-integer', 'mappings': {'low': [[-220236, -1]]}}") + "," +
        member("max", "{'type': 'variable-length-unsigned-integer'}") + "," +
        member("min", "{'type': 'variable-length-signed-integer'}");
    const std::string values = bytes({0xb4, 0xc7, 0x72}) + bytes({0xb4, 0xc7, 0x72}) + std::string(9, '\xff') + "\x01" +
                               std::string(9, '\x80') + "\x7f";
    CHECK(read(metadata_of(fields), packet(values)).line() ==
          "u=1876916 s=-220236 max=18446744073709551615 min=-9223372036854775808");
    auto endless = read(metadata_of(fields), packet(std::string(40, '\xff')));
    CHECK(endless.line() == "0 events");
    CHECK(endless.losses.truncated_packets == 1);
}

TEST_CASE("texts and BLOBs, of fixed and of told length") {
    const std::string fields =
        member("n", "'u8'") + "," + member("nul", "{'type': 'null-terminated-string'}") + "," +
        member("fixed", "{'type': 'static-length-string', 'length': 5, 'encoding': 'utf-8'}") + "," +
        member("told",
               "{'type': 'dynamic-length-string', 'length-field-location': {'origin': 'event-record-payload', 'path': "
               "['n']}}") +
        "," + member("blob", "{'type': 'static-length-blob', 'length': 2, 'media-type': 'image/png'}") + "," +
        member("more", "{'type': 'dynamic-length-blob', 'length-field-location': {'path': ['n']}}") + "," +
        member("z", "'u8'");
    CHECK(read(metadata_of(fields), packet("\x03"
                                           "ab" +
                                           bytes({0}) + "cd" + bytes({0, 'x', 'x'}) +
                                           "efg"
                                           "pq"
                                           "rst" +
                                           bytes({9})))
              .line() == "n=3 nul=\"ab\" fixed=\"cd\" told=\"efg\" blob more z=9");
}

TEST_CASE("optional fields: by a boolean, by ranges") {
    const std::string fields =
        member("has", bits("fixed-length-boolean", 8, "little-endian")) + "," +
        member("s", bits("fixed-length-signed-integer", 8, "little-endian")) + "," +
        member("a", "{'type': 'optional', 'selector-field-location': {'path': ['has']}, 'field-class': 'u8'}") + "," +
        member("b",
               "{'type': 'optional', 'selector-field-location': {'path': ['s']}, 'selector-field-ranges': [[-9, -1], "
               "[5, 5]], 'field-class': 'u8'}") +
        "," + member("z", "'u8'");
    CHECK(read(metadata_of(fields), packet(bytes({4, 0xff, 1, 2, 77}))).line() == "has=1 s=-1 a b z=77");
    CHECK(read(metadata_of(fields), packet(bytes({0, 5, 2, 77}))).line() == "has=0 s=5 a b z=77");
    CHECK(read(metadata_of(fields), packet(bytes({0, 4, 77}))).line() == "has=0 s=4 a b z=77");
}

TEST_CASE("variants: ranges of signed and unsigned tags, of other scopes, of structures around") {
    auto variant = [](const std::string &location, const std::string &low, const std::string &high) {
        return "{'type': 'variant', 'selector-field-location': " + location +
               ", 'options': [{'selector-field-ranges': [[" + low + ", " + high + "]], 'field-class': 'u8'}," +
               "{'name': 'two', 'selector-field-ranges': [[1, 1], [3, 3]], 'field-class': {'type': 'structure', "
               "'member-classes': [" +
               member("k", "'u8'") + "," +
               member("list",
                      "{'type': 'dynamic-length-array', 'element-field-class': 'u8', 'length-field-location': {'path': "
                      "['k']}}") +
               "]}}]}";
    };
    const std::string tag = member("t", bits("fixed-length-unsigned-integer", 64, "little-endian"));
    const std::string unsigned_fields =
        tag + "," + member("v", variant("{'path': ['t']}", "18446744073709551614", "18446744073709551615")) + "," +
        member("z", "'u8'");
    CHECK(read(metadata_of(unsigned_fields), packet(std::string(8, '\xff') + bytes({1, 77}))).line() ==
          "t=18446744073709551615 v z=77");
    CHECK(read(metadata_of(unsigned_fields), packet(bytes({3, 0, 0, 0, 0, 0, 0, 0, 2, 8, 9, 77}))).line() ==
          "t=3 v z=77");
    auto none = read(metadata_of(unsigned_fields), packet(bytes({2, 0, 0, 0, 0, 0, 0, 0, 2, 8, 9, 77})));
    CHECK(none.line() == "0 events");
    const std::string context = ", 'specific-context-field-class': {'type': 'structure', 'member-classes': [" +
                                member("t", "{'type': 'variable-length-signed-integer'}") + "]}";
    const std::string nested = member(
        "deep", "{'type': 'structure', 'member-classes': [" +
                    member("v", variant("{'origin': 'event-record-specific-context', 'path': ['t']}", "-2", "-1")) +
                    "]}");
    CHECK(read(metadata_of(nested, context), packet(bytes({0x7f, 1}))).line() == "deep.v t=-1");
    const std::string around =
        member("n", "'u8'") + "," +
        member("deep",
               "{'type': 'structure', 'member-classes': [" +
                   member("l", "{'type': 'dynamic-length-string', 'length-field-location': {'path': [null, 'n']}}") +
                   "]}");
    CHECK(read(metadata_of(around), packet(bytes({2, 'h', 'i'}))).line() == "n=2 deep.l=\"hi\"");
}

TEST_CASE("arrays: of structures with lengths of their own, aligned") {
    const std::string pair =
        "{'type': 'structure', 'member-classes': [" + member("n", "'u8'") + "," +
        member("s", "{'type': 'dynamic-length-string', 'length-field-location': {'path': ['n']}}") + "]}";
    const std::string fields =
        member("list", "{'type': 'static-length-array', 'length': 2, 'element-field-class': " + pair + "}") + "," +
        member("flags",
               "{'type': 'static-length-array', 'length': 12, 'minimum-alignment': 32, 'element-field-class': " +
                   bits("fixed-length-boolean", 1, "little-endian") + "}") +
        "," + member("z", "'u8'");
    // the payload is aligned as its flags are: from byte 26 of the packet to 28; the list takes 5 bytes, so the flags
    // lie at 36, z at 38
    CHECK(read(metadata_of(fields), packet(bytes({0, 0, 2, 'a', 'b', 1, 'c', 0, 0, 0, 0xff, 0x0f, 77}))).line() ==
          "list flags z=77");
}

TEST_CASE("packets: magic, uuid and class are checked") {
    const std::string good = packet(bytes({7}));
    for (std::size_t at : {0u, 5u, 20u}) {
        std::string bad = good;
        bad[at] = '\x55';
        auto r = read(metadata_of(member("x", "'u8'")), bad);
        CHECK(r.seen.lines.empty());
        CHECK(r.losses.malformed_packets == 1);
    }
}

TEST_CASE("what is not known is not guessed") {
    auto unsupported = [](const std::string &fields, const std::string &extra = "") {
        CHECK_THROWS_AS(read(metadata_of(fields, extra), packet(bytes({7}))), ctf::Unsupported);
    };
    unsupported(member("x", "{'type': 'null-terminated-string', 'encoding': 'utf-16le'}"));
    unsupported(member("x", bits("fixed-length-unsigned-integer", 65, "little-endian")));
    unsupported(member("x", bits("fixed-length-floating-point-number", 16, "little-endian")));
    unsupported(member("x", "{'type': 'complex-number'}"));
    unsupported(member("x", "{'type': 'dynamic-length-string', 'length-field-location': {'path': ['elsewhere']}}"));
    unsupported(member("a", bits("fixed-length-unsigned-integer", 3, "little-endian")) + "," +
                member("b", bits("fixed-length-unsigned-integer", 5, "big-endian")));
    unsupported(member("x", "'u8'"), ", 'extensions': {'my.tracer': {'piano': 88}}");
    const std::string body = event_class(member("x", "'u8'"));
    CHECK_THROWS_AS(ctf::parse_metadata(sequence({"{'type': 'preamble', 'version': 3}"})), ctf::Unsupported);
    CHECK_THROWS_AS(
        ctf::parse_metadata(sequence({"{'type': 'preamble', 'version': 2, 'extensions': {'my.tracer': {}}}"})),
        ctf::Unsupported);
    CHECK_THROWS_AS(ctf::parse_metadata(sequence({kPreamble, "{'type': 'data-stream-class'}"})), ctf::Unsupported);
    CHECK_NOTHROW(
        read(metadata_of(member("x", "'u8'"), ", 'attributes': {'my.tracer': {'piano': 88}}"), packet(bytes({7}))));
}

TEST_CASE("junk is junk") {
    auto malformed = [](const std::string &text) { CHECK_THROWS_AS(ctf::parse_metadata(text), ctf::Malformed); };
    malformed("\x1e");
    malformed("\x1e{");
    malformed("\x1e[]");
    malformed(sequence({kClock}));
    malformed(sequence({kPreamble, kPreamble}));
    malformed(sequence({kPreamble, kByte, kByte}));
    malformed(sequence({kPreamble, kStream}));
    malformed(sequence({kPreamble, "{'type': 'clock-class', 'id': 'c', 'frequency': 0}"}));
    malformed(sequence({kPreamble, "{'type': 'clock-class', 'id': 'c', 'frequency': 'often'}"}));
    malformed(sequence({kPreamble, "{'type': 'field-class-alias', 'name': 'a', 'field-class': 'a'}"}));
    malformed(metadata_of(member("x", "'u9'")));
    malformed(metadata_of(member("x", "'u8'") + "," + member("x", "'u8'")));
    malformed(metadata_of(member("x", "'u8'")).substr(0, 1500));
}

TEST_CASE("types without bound are not recognised") {
    std::vector<std::string> fragments = {kPreamble, kByte,
                                          "{'type': 'field-class-alias', 'name': 'a0', 'field-class': 'u8'}"};
    for (int i = 0; i < 30; ++i) {
        const std::string before = "'a" + std::to_string(i) + "'";
        fragments.push_back("{'type': 'field-class-alias', 'name': 'a" + std::to_string(i + 1) +
                            "', 'field-class': {'type': 'structure', 'member-classes': [" + member("x", before) + "," +
                            member("y", before) + "]}}");
    }
    fragments.insert(fragments.end(), {kTrace, kClock, kStream, event_class(member("x", "'a30'"))});
    CHECK_THROWS_AS(ctf::parse_metadata(sequence(fragments)), ctf::Unsupported);
    std::string deep = "'u8'";
    for (int i = 0; i < 40; ++i)
        deep = "{'type': 'static-length-array', 'length': 1, 'element-field-class': " + deep + "}";
    CHECK_THROWS_AS(ctf::parse_metadata(metadata_of(member("x", deep))), ctf::Unsupported);
    CHECK_THROWS(ctf::parse_metadata(std::string("\x1e") + std::string(1 << 20, '[')));
}
