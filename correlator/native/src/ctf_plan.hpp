// SPDX-License-Identifier: MIT
// Decode plans: a type compiled to steps that read only the wanted fields and step over the rest.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ctf_types.hpp"
#include "event.hpp"

namespace opline::ctf {

// A leaf of a structure, in decoding order.
struct Leaf {
    FieldDecl decl;
    bool addressable = true;  // false: inside a variant or an array, no slot can hold it
};

// The leaves of a structure type, names without the leading underscore, nested structures as a.b. nullptr: none.
std::vector<Leaf> leaves_of(const TypePtr &structure, FieldScope scope);

struct Read {
    enum class What : std::uint8_t { kUnsigned, kSigned, kReal32, kReal64, kText };
    std::uint32_t offset = 0;  // bytes from the run's begin
    std::uint32_t size = 0;    // bytes
    What what = What::kUnsigned;
    std::int32_t slot = -1, reg = -1;
};

struct Program;

struct Step {
    enum class Op : std::uint8_t {
        kAlign,     // to `align_bits`
        kRun,       // `bytes` bytes of byte-aligned little-endian fields of fixed size
        kString,    // to its NUL
        kInteger,   // any size, order and position
        kReal,      // big-endian, or not at a byte
        kText,      // array or sequence of characters
        kSkip,      // array or sequence of integers that nobody wants
        kRepeat,    // array or sequence of anything else
        kVariant
    };
    Op op = Op::kAlign;
    std::uint32_t align_bits = 8;
    std::uint32_t size_bits = 0;  // integer, real, element
    bool is_signed = false, big_endian = false;
    std::int32_t slot = -1, reg = -1;
    std::int32_t length_reg = -1;  // sequence; -1: `count`
    std::uint64_t count = 0;
    std::uint32_t bytes = 0;
    std::vector<Read> reads;
    std::vector<Program> bodies;                                      // repeat: one; variant: one per option
    std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>> ranges;  // variant: per option, tag values
};

struct Program {
    std::vector<Step> steps;
    std::uint32_t registers = 0;  // of the outermost program
};

// Compiles structures in decoding order into one program. `slots[i]`: slot of leaf i of structure i's leaves, -1: not wanted.
class Compiler {
  public:
    void add(const TypePtr &structure, const std::vector<std::int32_t> &slots);
    Program take();

  private:
    struct Scope {
        const Type *structure;
        std::vector<std::pair<std::string, std::int32_t>> registers;  // member name → register
        std::vector<std::pair<std::string, const Type *>> types;
    };
    void compile(const Type &, std::vector<Step> &, const std::string &name, bool addressable);
    void fixed(std::vector<Step> &, Read);
    std::int32_t register_of(const std::string &name, const Type **type = nullptr);
    std::int32_t next_slot(bool addressable);

    std::vector<Scope> scopes_;
    std::vector<Step> steps_;
    const std::vector<std::int32_t> *slots_ = nullptr;
    std::size_t leaf_ = 0;
    std::uint32_t registers_ = 0;
};

// A position in a packet: bits from its first byte.
struct Cursor {
    const std::uint8_t *packet;
    std::uint64_t at, end;  // bits
};

// Runs a program. False: the packet ends before; the cursor is then anywhere.
bool decode(const Program &, Cursor &, Slot *slots, std::vector<std::uint64_t> &registers);

// Integer of any size at any bit position. The caller has checked the bounds.
std::uint64_t read_bits(const std::uint8_t *packet, std::uint64_t at, std::uint32_t size, bool big_endian);

}  // namespace opline::ctf
