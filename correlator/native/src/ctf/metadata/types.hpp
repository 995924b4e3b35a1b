// SPDX-License-Identifier: MIT
// What the native reader needs of a trace's description, whether CTF 1.8 or CTF 2 says it.
// Sources of the formats: "Common Trace Format v1.8.3" and the metadata that lttng-ust and lttng-modules 2.13 write;
// CTF2-SPEC-2.0 and the metadata that lttng-ust 2.16 and babeltrace 2.1.1 write.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace opline::ctf {

// Unknown to the native reader: the babeltrace2 front end must read the trace. The text has the reason.
struct Unsupported : std::runtime_error {
    using std::runtime_error::runtime_error;
};
// Senseless for every reader. One line: the problem and the place.
struct Malformed : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct Type;
using TypePtr = std::shared_ptr<const Type>;

// The meaning of a field of a packet's header or context, or of an event's header.
enum class FieldRole : std::uint8_t {
    kMagic,
    kUuid,
    kStreamClassId,
    kStreamId,  // packet header
    kBegin,
    kEnd,
    kContentSize,
    kPacketSize,
    kSequence,
    kDiscarded,
    kCpu,  // packet context
    kEventId,
    kTimestamp,  // event header
    kCount
};
using Roles = std::uint16_t;  // a bit each
constexpr Roles bit(FieldRole r) { return static_cast<Roles>(1u << static_cast<unsigned>(r)); }

struct Member {
    std::string name;  // without LTTng's underscore before every name in CTF 1.8
    TypePtr type;
};

// Both ends are included. Compared by the integer's signedness, with 64 bits.
struct Range {
    std::int64_t low, high;
};

struct EnumRange {
    std::string label;
    Range range;
};

// Where the length of a sequence or the tag of a variant lies.
struct Location {
    enum class Root : std::uint8_t {
        kOutward,    // CTF 1.8: in the innermost structure with such a member
        kInnermost,  // in the field's own structure
        kPacketHeader,
        kPacketContext,
        kEventHeader,
        kCommonContext,
        kSpecificContext,
        kPayload
    };
    Root root = Root::kOutward;
    std::vector<std::optional<std::string>> path;  // nullopt: the structure around
    std::string text() const;
};

struct Type {
    enum class Kind : std::uint8_t { kInteger, kReal, kString, kEnum, kStruct, kVariant, kOption, kArray, kSequence };
    enum class Form : std::uint8_t { kNumber, kBoolean, kBits };
    Kind kind = Kind::kInteger;
    Form form = Form::kNumber;     // integer
    std::uint32_t size_bits = 0;   // integer, real, enum; 0: variable_length
    std::uint32_t align_bits = 1;  // struct, array, sequence: without its members' alignment
    bool is_signed = false;
    bool big_endian = false;
    bool reversed = false;         // bit order contrary to the byte order
    bool variable_length = false;  // integer, enum: LEB128
    bool text = false;             // integer with an encoding: arrays of it are strings
    std::uint8_t base = 10;        // integer: how to show it
    Roles roles = 0;               // integer; array of bytes: uuid
    std::string clock;             // CTF 1.8: integer mapped to a clock; "": none
    TypePtr element;               // array, sequence
    std::uint64_t length = 0;      // array
    Location location;             // sequence: the length; variant, option: the tag
    std::vector<Member> members;   // struct, variant; option: one
    // variant, option of CTF 2: tags per member. Else the tag's labels are the members' names
    std::vector<std::vector<Range>> selections;
    std::vector<EnumRange> ranges;  // enum
    std::uint32_t nodes = 1;        // types in the tree, each counted once per use
    std::uint32_t depth = 1;        // of this tree

    bool is_integer() const { return kind == Kind::kInteger || kind == Kind::kEnum; }
    bool is_text() const {
        return (kind == Kind::kArray || kind == Kind::kSequence) && element->kind == Kind::kInteger && element->text &&
               element->size_bits == 8 && element->align_bits % 8 == 0;
    }
    // Counts a part of a compound type. A few lines of metadata can describe a type of any size: there is a bound.
    // Throws Unsupported.
    void grow(const Type &part);
};

constexpr std::uint32_t kMaxDepth = 32, kMaxNodes = 1u << 14, kMaxNodesInAll = 1u << 18;

// Alignment in bits; for a compound type, the greatest alignment among the type and its members.
std::uint32_t alignment(const Type &);
// Tag values per member of a variant or option, in any form of metadata.
std::vector<std::vector<Range>> selections_of(const Type &variant, const Type &tag);

struct ClockDecl {
    std::string name, uuid, description;
    std::uint64_t frequency = 1'000'000'000, precision = 0;
    std::int64_t offset_s = 0, offset = 0;
    bool unix_epoch = false;  // the origin
};

struct EventDecl {
    std::string name, emf_uri;
    std::uint64_t id = 0, stream_id = 0;
    std::optional<int> log_level;  // LTTng-UST's: 0 (emergency) … 14 (debug)
    TypePtr context, payload;      // nullptr: none
};

struct StreamClassDecl {
    std::uint64_t id = 0;
    TypePtr packet_context, event_header, event_context;  // nullptr: none
};

struct EnvValue {
    std::string text;
    bool is_number = false;
};

struct Metadata {
    int major = 1;
    bool big_endian = false;
    std::string uuid;                                         // of the trace, as text; "": none
    std::optional<std::array<std::uint8_t, 16>> packet_uuid;  // in every packet
    TypePtr packet_header;
    std::map<std::string, EnvValue> env;
    std::map<std::string, ClockDecl> clocks;  // by name; CTF 2: by id
    std::map<std::uint64_t, StreamClassDecl> streams;
    std::vector<EventDecl> events;
};

// The text of a `metadata` file, unpacked if stored in packets. Throws Malformed for junk.
std::string metadata_text(const std::string &bytes);
// Throws Unsupported or Malformed, with the place. The result is bounded for every text: no type is deeper than 32 or
// has more than 16384 parts, and all events together have at most 262144 parts.
Metadata parse_metadata(const std::string &text);
// The two languages.
Metadata parse_tsdl(const std::string &text);
Metadata parse_json_sequence(const std::string &text);
// "81fb405b-d997-4093-8102-e75891535930" → 16 bytes; nullopt for anything else.
std::optional<std::array<std::uint8_t, 16>> parse_uuid(const std::string &text);

}  // namespace opline::ctf
