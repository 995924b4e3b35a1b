// SPDX-License-Identifier: MIT
// Decode plans: a type compiled to steps that read only the wanted fields and step over the rest.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "ctf/metadata/types.hpp"
#include "event/event.hpp"

namespace opline::ctf {

// A leaf of a structure, in decoding order.
struct Leaf {
    FieldDecl decl;
    bool addressable = true;  // false: a variant, or an array that no slot can hold
};

// The leaves of a structure type, nested structures as a.b. nullptr: none.
std::vector<Leaf> leaves_of(const TypePtr &structure, FieldScope scope);

struct Read {
    enum class What : std::uint8_t { kUnsigned, kSigned, kReal32, kReal64, kText, kBytes };
    std::uint32_t offset = 0;  // bytes from the run's begin
    std::uint32_t size = 0;    // bytes
    What what = What::kUnsigned;
    std::int32_t slot = -1, reg = -1;
};

struct Program;

struct Step {
    enum class Op : std::uint8_t {
        kAlign,    // to `align_bits`
        kRun,      // `bytes` bytes of byte-aligned little-endian fields of fixed size
        kString,   // up to the NUL
        kInteger,  // any size, order and position
        kLeb,      // LEB128
        kReal,     // big-endian, or not at a byte
        kText,     // array or sequence of characters
        kBlock,    // array or sequence of numbers of one size; the last integer can be wanted
        kRepeat,   // array or sequence of anything else
        kVariant,  // one of the bodies
        kOption    // the only body, or nothing
    };
    Op op = Op::kAlign;
    std::uint32_t align_bits = 8;
    std::uint32_t size_bits = 0;  // integer, real, element
    bool is_signed = false, big_endian = false, reversed = false, boolean = false;
    std::int32_t slot = -1, reg = -1;
    std::int32_t length_reg = -1;  // sequence: length; variant, option: tag; -1: `count`
    std::uint64_t count = 0;
    std::uint32_t bytes = 0;
    std::vector<Read> reads;
    std::vector<Program> bodies;             // repeat, option: one; variant: one per option
    std::vector<std::vector<Range>> ranges;  // variant, option: per body, tag values
};

struct Program {
    std::vector<Step> steps;
    std::uint32_t registers = 0;  // of the outermost program
};

// A type with the facts for decoding that lie in other fields; for users of every field, the whole tree (the
// babeltrace2 source).
struct Walk {
    const Type *type = nullptr;
    std::uint32_t align_bits = 1;
    std::int32_t reg = -1;      // integer: register of the value
    std::int32_t tag_reg = -1;  // sequence: length; variant, option: tag
    bool tag_signed = false;
    std::vector<std::vector<Range>> ranges;  // variant, option
    std::vector<Walk> parts;                 // members, options, or the element
};

// Compiles structures in decoding order into one program.
class Compiler {
  public:
    // The slot of a field, -1: not wanted. Called in decoding order for every field that is no structure. `leaf`: a
    // field of leaves_of(); else the field lies inside a variant or an array.
    using SlotOf = std::function<std::int32_t(const Type &, bool leaf)>;
    void add(const TypePtr &structure, Location::Root root, const SlotOf &, Walk *walk = nullptr);
    // `slots[i]`: slot of leaf i.
    void add(const TypePtr &structure, Location::Root root, const std::vector<std::int32_t> &slots);
    // A structure read before by another program: may have lengths and tags. All programs with one common array of
    // registers are compiled after the same structures, in the same order.
    void passed_before(const TypePtr &structure, Location::Root root);
    // `kept`: registers read by other programs.
    Program take(const std::set<std::int32_t> &kept = {});
    // Registers of passed_before() read by the program.
    const std::set<std::int32_t> &read_before() const { return read_before_; }

  private:
    // The possible targets of a location: the members so far, as a tree.
    struct Node {
        std::string name;
        const Type *type = nullptr;
        std::int32_t reg = -1;
        Node *parent = nullptr;  // structure around
        std::vector<std::unique_ptr<Node>> members;
    };
    void compile(const Type &, std::vector<Step> &, Node &, bool leaf, Walk &);
    void integer(const Type &, std::vector<Step> &, Node &, bool leaf);
    void real(const Type &, std::vector<Step> &, bool leaf);
    void array(const Type &, std::vector<Step> &, Node &, bool leaf, Walk &);
    void variant(const Type &, std::vector<Step> &, Node &, bool leaf, Walk &);
    void align(std::vector<Step> &, std::uint32_t bits);
    void fixed(std::vector<Step> &, Read);
    const Node &locate(const Location &, const Node &from);

    std::vector<std::pair<Location::Root, std::unique_ptr<Node>>> roots_;
    std::vector<Step> steps_;
    const SlotOf *slot_of_ = nullptr;
    std::uint32_t registers_ = 0, before_ = 0;  // before_: the registers of passed_before()
    std::set<std::int32_t> read_before_;
    void passed(std::uint32_t size_bits, bool big_endian);
    int bit_ = -1;    // where in a byte the position is; -1: not known
    int order_ = -1;  // byte order of the last bits: 1 big-endian; -1: none yet
};

// A position in a packet: bits from its first byte.
struct Cursor {
    const std::uint8_t *packet;
    std::uint64_t at, end;  // bits
};

// ctf/decode/decode.cpp from here on. Runs a program. False: the packet ends before, or a variant's tag names no
// option; the cursor is then anywhere.
bool decode(const Program &, Cursor &, Slot *slots, std::vector<std::uint64_t> &registers);

// Integer of any size at any bit position. The caller has checked the bounds.
std::uint64_t read_bits(const std::uint8_t *packet, std::uint64_t at, std::uint32_t size, bool big_endian);
// A field of at most 64 bits, with bit order, sign and truth applied.
std::uint64_t read_number(const std::uint8_t *packet, std::uint64_t at, std::uint32_t size, bool big_endian,
                          bool reversed, bool is_signed, bool boolean);
// LEB128 at a byte. False: the packet ends inside, or the number has more than 64 bits. `bytes`: length of the number.
bool read_leb(Cursor &, bool is_signed, std::uint64_t &value, std::uint32_t &bytes);
bool in_ranges(const std::vector<Range> &, std::uint64_t value, bool is_signed);

}  // namespace opline::ctf
