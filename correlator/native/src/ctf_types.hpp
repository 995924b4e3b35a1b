// SPDX-License-Identifier: MIT
// CTF 1.8 metadata as LTTng writes it: types, and what the native reader needs of a trace's description.
// Source of the format: "Common Trace Format v1.8.3", and the metadata that lttng-ust 2.13 and lttng-modules 2.13 write.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace opline::ctf {

// What the native reader does not positively recognise: the babeltrace2 front end is to read it. The text says why.
struct Unsupported : std::runtime_error {
    using std::runtime_error::runtime_error;
};
// What no reader can make sense of. One line: what, where.
struct Malformed : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct Type;
using TypePtr = std::shared_ptr<const Type>;

struct Member {
    std::string name;  // as in the metadata, leading underscore included
    TypePtr type;
};

struct EnumRange {
    std::string label;
    std::int64_t low, high;
};

struct Type {
    enum class Kind : std::uint8_t { kInteger, kReal, kString, kEnum, kStruct, kVariant, kArray, kSequence };
    Kind kind = Kind::kInteger;
    std::uint32_t size_bits = 0;   // integer, real, enum
    std::uint32_t align_bits = 1;  // struct: its own, without its members'
    bool is_signed = false;
    bool big_endian = false;
    bool text = false;             // integer with an encoding: arrays of it are strings
    std::string clock;             // integer mapped to a clock; "": none
    TypePtr element;               // array, sequence; enum: its integer
    std::uint64_t length = 0;      // array
    std::string length_name;       // sequence
    std::string tag_name;          // variant
    std::vector<Member> members;   // struct, variant
    std::vector<EnumRange> ranges; // enum
    std::uint32_t nodes = 1;       // types in this tree, each counted as often as it occurs
    std::uint32_t depth = 1;       // of this tree
};

// Alignment in bits: of a compound type, the greatest of its own and its members'.
std::uint32_t alignment(const Type &);

struct ClockDecl {
    std::string name, uuid;
    std::uint64_t frequency = 1'000'000'000;
    std::int64_t offset_s = 0, offset = 0;
};

struct EventDecl {
    std::string name;
    std::uint64_t id = 0, stream_id = 0;
    TypePtr context, payload;  // nullptr: none
};

struct StreamClassDecl {
    std::uint64_t id = 0;
    TypePtr packet_context, event_header, event_context;  // nullptr: none
};

struct Metadata {
    bool big_endian = false;
    std::string uuid;
    TypePtr packet_header;
    std::map<std::string, std::string> env;  // texts and integers, as texts
    std::map<std::string, ClockDecl> clocks;
    std::map<std::uint64_t, StreamClassDecl> streams;
    std::vector<EventDecl> events;
};

// The text of a `metadata` file: unpacked where it is in packets. Throws Unsupported for CTF 2, Malformed for junk.
std::string metadata_text(const std::string &bytes);
// Throws Unsupported or Malformed, with the line. What it gives is bounded, whatever the text says: no type is deeper than 32
// or has more than 16384 parts, and all events together have at most 262144 parts.
Metadata parse_metadata(const std::string &text);

}  // namespace opline::ctf
