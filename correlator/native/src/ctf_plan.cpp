// SPDX-License-Identifier: MIT
#include "ctf_plan.hpp"

#include <algorithm>
#include <cstring>

namespace opline::ctf {
namespace {

constexpr std::uint32_t kMaxRun = 1u << 24;  // bytes of fixed size in a row
constexpr std::size_t kMaxName = 512;         // of a field, with those of the structures that it lies in

std::string plain(const std::string &name) { return !name.empty() && name[0] == '_' ? name.substr(1) : name; }

bool is_text(const Type &t) {
    return (t.kind == Type::Kind::kArray || t.kind == Type::Kind::kSequence) && t.element->kind == Type::Kind::kInteger &&
           t.element->text && t.element->size_bits == 8 && t.element->align_bits % 8 == 0;
}

void collect(const Type &t, const std::string &name, FieldScope scope, std::vector<Leaf> &out) {
    if (name.size() > kMaxName) throw Unsupported("a field's name of more than " + std::to_string(kMaxName) + " characters");
    switch (t.kind) {
    case Type::Kind::kStruct:
        for (const auto &m : t.members) collect(*m.type, name.empty() ? plain(m.name) : name + "." + plain(m.name), scope, out);
        return;
    case Type::Kind::kInteger:
    case Type::Kind::kEnum:
        out.push_back({{name, t.is_signed ? FieldType::kSigned : FieldType::kUnsigned, scope}, true});
        return;
    case Type::Kind::kReal: out.push_back({{name, FieldType::kReal, scope}, true}); return;
    case Type::Kind::kString: out.push_back({{name, FieldType::kString, scope}, true}); return;
    case Type::Kind::kArray:
    case Type::Kind::kSequence:
        out.push_back({{name, is_text(t) ? FieldType::kString : FieldType::kOther, scope}, is_text(t)});
        return;
    case Type::Kind::kVariant: out.push_back({{name, FieldType::kOther, scope}, false}); return;
    }
}

[[gnu::always_inline]] inline std::uint64_t load(const std::uint8_t *p, std::uint32_t size) {
    switch (size) {
    case 1: return *p;
    case 2: { std::uint16_t v; std::memcpy(&v, p, 2); return v; }
    case 4: { std::uint32_t v; std::memcpy(&v, p, 4); return v; }
    case 8: { std::uint64_t v; std::memcpy(&v, p, 8); return v; }
    default: break;
    }
    std::uint64_t v = 0;
    for (std::uint32_t i = size; i-- > 0;) v = v << 8 | p[i];
    return v;
}

std::int64_t sign_extend(std::uint64_t v, std::uint32_t bits) {
    return bits >= 64 ? static_cast<std::int64_t>(v) : static_cast<std::int64_t>(v << (64 - bits)) >> (64 - bits);
}

Slot text_slot(const std::uint8_t *p, std::size_t size) {
    auto s = reinterpret_cast<const char *>(p);
    return Slot::of(std::string_view(s, strnlen(s, size)));
}

}  // namespace

std::vector<Leaf> leaves_of(const TypePtr &structure, FieldScope scope) {
    std::vector<Leaf> out;
    if (!structure) return out;
    if (structure->kind != Type::Kind::kStruct) throw Unsupported("fields that are no structure");
    collect(*structure, "", scope, out);
    return out;
}

std::int32_t Compiler::next_slot(bool addressable) {
    if (!addressable) return -1;
    auto slot = leaf_ < slots_->size() ? (*slots_)[leaf_] : -1;
    ++leaf_;
    return slot;
}

std::int32_t Compiler::register_of(const std::string &name, const Type **type) {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope)
        for (std::size_t i = 0; i < scope->types.size(); ++i) {
            if (scope->types[i].first != name) continue;
            const Type *t = scope->types[i].second;
            if (t->kind != Type::Kind::kInteger && t->kind != Type::Kind::kEnum) throw Unsupported("a length or tag that is no integer: " + name);
            if (type) *type = t;
            return scope->registers[i].second;
        }
    throw Unsupported("a length or tag that lies elsewhere: " + name);
}

// Appends to the last run, or begins one.
void Compiler::fixed(std::vector<Step> &steps, Read read) {
    if (steps.empty() || steps.back().op != Step::Op::kRun) {
        Step run;
        run.op = Step::Op::kRun;
        steps.push_back(std::move(run));
    }
    Step &run = steps.back();
    if (read.size > kMaxRun - run.bytes) throw Unsupported("fields of more than " + std::to_string(kMaxRun) + " bytes");
    read.offset = run.bytes;
    run.bytes += read.size;
    if (read.slot >= 0 || read.reg >= 0) run.reads.push_back(read);
}

void Compiler::compile(const Type &t, std::vector<Step> &steps, const std::string &name, bool addressable) {
    auto align = [&](std::uint32_t bits) {
        if (bits <= 1) return;
        // After a run or a string the position is at a byte already.
        const bool at_byte = !steps.empty() && (steps.back().op == Step::Op::kRun || steps.back().op == Step::Op::kString);
        if (bits == 8 && at_byte) return;
        if (!steps.empty() && steps.back().op == Step::Op::kAlign && steps.back().align_bits >= bits) return;
        Step s;
        s.op = Step::Op::kAlign;
        s.align_bits = bits;
        steps.push_back(std::move(s));
    };
    switch (t.kind) {
    case Type::Kind::kInteger:
    case Type::Kind::kEnum: {
        const auto slot = next_slot(addressable);
        const auto reg = static_cast<std::int32_t>(registers_++);
        if (!scopes_.empty()) {
            scopes_.back().registers.emplace_back(name, reg);
            scopes_.back().types.emplace_back(name, &t);
        }
        align(t.align_bits);
        if (!t.big_endian && t.size_bits % 8 == 0 && t.align_bits % 8 == 0) {
            Read r;
            r.size = t.size_bits / 8;
            r.what = t.is_signed ? Read::What::kSigned : Read::What::kUnsigned;
            r.slot = slot;
            r.reg = reg;
            fixed(steps, r);
            return;
        }
        Step s;
        s.op = Step::Op::kInteger;
        s.size_bits = t.size_bits;
        s.is_signed = t.is_signed;
        s.big_endian = t.big_endian;
        s.slot = slot;
        s.reg = reg;
        steps.push_back(std::move(s));
        return;
    }
    case Type::Kind::kReal: {
        const auto slot = next_slot(addressable);
        align(t.align_bits);
        if (!t.big_endian && t.align_bits % 8 == 0) {
            Read r;
            r.size = t.size_bits / 8;
            r.what = r.size == 4 ? Read::What::kReal32 : Read::What::kReal64;
            r.slot = slot;
            fixed(steps, r);
            return;
        }
        Step s;
        s.op = Step::Op::kReal;
        s.size_bits = t.size_bits;
        s.big_endian = t.big_endian;
        s.slot = slot;
        steps.push_back(std::move(s));
        return;
    }
    case Type::Kind::kString: {
        const auto slot = next_slot(addressable);
        align(8);
        Step s;
        s.op = Step::Op::kString;
        s.slot = slot;
        steps.push_back(std::move(s));
        return;
    }
    case Type::Kind::kStruct: {
        align(alignment(t));
        scopes_.push_back({&t, {}, {}});
        for (const auto &m : t.members) compile(*m.type, steps, m.name, addressable);
        scopes_.pop_back();
        return;
    }
    case Type::Kind::kArray:
    case Type::Kind::kSequence: {
        const bool text = is_text(t);
        const auto slot = next_slot(addressable);
        const Type &e = *t.element;
        align(alignment(e));
        if (text && t.kind == Type::Kind::kArray) {
            Read r;
            r.size = static_cast<std::uint32_t>(std::min<std::uint64_t>(t.length, kMaxRun + 1));
            r.what = Read::What::kText;
            r.slot = slot;
            fixed(steps, r);
            return;
        }
        Step s;
        s.slot = text ? slot : -1;
        s.count = t.length;
        s.length_reg = t.kind == Type::Kind::kSequence ? register_of(t.length_name) : -1;
        s.size_bits = e.size_bits;
        const bool even = (e.kind == Type::Kind::kInteger || e.kind == Type::Kind::kEnum || e.kind == Type::Kind::kReal) &&
                          e.size_bits % std::max(1u, e.align_bits) == 0;
        if (text) {
            s.op = Step::Op::kText;
        } else if (even) {
            s.op = Step::Op::kSkip;
        } else {
            s.op = Step::Op::kRepeat;
            Program body;
            compile(e, body.steps, "", false);
            s.bodies.push_back(std::move(body));
        }
        steps.push_back(std::move(s));
        return;
    }
    case Type::Kind::kVariant: {
        next_slot(addressable);
        const Type *tag = nullptr;
        Step s;
        s.op = Step::Op::kVariant;
        s.length_reg = register_of(t.tag_name, &tag);
        s.is_signed = tag->is_signed;
        if (tag->kind != Type::Kind::kEnum) throw Unsupported("a variant whose tag is no enumeration");
        for (const auto &option : t.members) {
            std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
            for (const auto &r : tag->ranges)
                if (plain(r.label) == plain(option.name)) ranges.emplace_back(r.low, r.high);
            Program body;
            compile(*option.type, body.steps, "", false);
            s.bodies.push_back(std::move(body));
            s.ranges.push_back(std::move(ranges));
        }
        steps.push_back(std::move(s));
        return;
    }
    }
}

void Compiler::add(const TypePtr &structure, const std::vector<std::int32_t> &slots) {
    if (!structure) return;
    slots_ = &slots;
    leaf_ = 0;
    // Each structure is a scope of its own; a sequence's length lies in the same structure, as LTTng writes it.
    compile(*structure, steps_, "", true);
    slots_ = nullptr;
}

Program Compiler::take() {
    // Registers that nobody reads are dropped from the runs.
    std::vector<bool> used(registers_);
    auto mark = [&](auto &&self, const std::vector<Step> &steps) -> void {
        for (const auto &s : steps) {
            if (s.length_reg >= 0) used[static_cast<std::size_t>(s.length_reg)] = true;
            for (const auto &b : s.bodies) self(self, b.steps);
        }
    };
    mark(mark, steps_);
    auto drop = [&](auto &&self, std::vector<Step> &steps) -> void {
        for (auto &s : steps) {
            if (s.reg >= 0 && !used[static_cast<std::size_t>(s.reg)]) s.reg = -1;
            for (auto &r : s.reads)
                if (r.reg >= 0 && !used[static_cast<std::size_t>(r.reg)]) r.reg = -1;
            s.reads.erase(std::remove_if(s.reads.begin(), s.reads.end(), [](const Read &r) { return r.slot < 0 && r.reg < 0; }), s.reads.end());
            for (auto &b : s.bodies) self(self, b.steps);
        }
    };
    drop(drop, steps_);
    Program p;
    p.steps = std::move(steps_);
    p.registers = registers_;
    steps_.clear();
    registers_ = 0;
    return p;
}

std::uint64_t read_bits(const std::uint8_t *packet, std::uint64_t at, std::uint32_t size, bool big_endian) {
    std::uint64_t v = 0;
    if (at % 8 == 0 && size % 8 == 0) {
        const std::uint8_t *p = packet + at / 8;
        const std::uint32_t n = size / 8;
        if (!big_endian) return load(p, n);
        for (std::uint32_t i = 0; i < n; ++i) v = v << 8 | p[i];
        return v;
    }
    // Little-endian: bit 0 of a byte comes first; big-endian: bit 7 does.
    for (std::uint32_t i = 0; i < size; ++i) {
        const std::uint64_t bit = at + i;
        const std::uint8_t byte = packet[bit / 8];
        if (big_endian) v = v << 1 | (byte >> (7 - bit % 8) & 1u);
        else v |= static_cast<std::uint64_t>(byte >> (bit % 8) & 1u) << i;
    }
    return v;
}

bool decode(const Program &program, Cursor &c, Slot *slots, std::vector<std::uint64_t> &registers) {
    for (const Step &s : program.steps) {
        switch (s.op) {
        case Step::Op::kAlign: c.at = (c.at + s.align_bits - 1) & ~std::uint64_t{s.align_bits - 1}; break;
        case Step::Op::kRun: {
            if (c.end < c.at || c.end - c.at < std::uint64_t{s.bytes} * 8) return false;
            const std::uint8_t *base = c.packet + c.at / 8;
            for (const Read &r : s.reads) {
                const std::uint8_t *p = base + r.offset;
                switch (r.what) {
                case Read::What::kUnsigned: {
                    const auto v = load(p, r.size);
                    if (r.slot >= 0) slots[r.slot] = Slot::of(v);
                    if (r.reg >= 0) registers[static_cast<std::size_t>(r.reg)] = v;
                    break;
                }
                case Read::What::kSigned: {
                    const auto v = sign_extend(load(p, r.size), r.size * 8);
                    if (r.slot >= 0) slots[r.slot] = Slot::of(v);
                    if (r.reg >= 0) registers[static_cast<std::size_t>(r.reg)] = static_cast<std::uint64_t>(v);
                    break;
                }
                case Read::What::kReal32: {
                    float f;
                    std::memcpy(&f, p, 4);
                    slots[r.slot] = Slot::of(static_cast<double>(f));
                    break;
                }
                case Read::What::kReal64: {
                    double d;
                    std::memcpy(&d, p, 8);
                    slots[r.slot] = Slot::of(d);
                    break;
                }
                case Read::What::kText: slots[r.slot] = text_slot(p, r.size); break;
                }
            }
            c.at += std::uint64_t{s.bytes} * 8;
            break;
        }
        case Step::Op::kString: {
            if (c.at >= c.end) return false;
            const std::uint8_t *p = c.packet + c.at / 8;
            const void *nul = std::memchr(p, 0, (c.end - c.at) / 8);
            if (!nul) return false;
            const auto size = static_cast<std::size_t>(static_cast<const std::uint8_t *>(nul) - p);
            if (s.slot >= 0) slots[s.slot] = Slot::of(std::string_view(reinterpret_cast<const char *>(p), size));
            c.at += (size + 1) * 8;
            break;
        }
        case Step::Op::kInteger:
        case Step::Op::kReal: {
            if (c.end < c.at || c.end - c.at < s.size_bits) return false;
            const auto v = read_bits(c.packet, c.at, s.size_bits, s.big_endian);
            c.at += s.size_bits;
            if (s.op == Step::Op::kReal) {
                if (s.slot < 0) break;
                double d;
                if (s.size_bits == 32) {
                    float f;
                    const auto v32 = static_cast<std::uint32_t>(v);
                    std::memcpy(&f, &v32, 4);
                    d = static_cast<double>(f);
                } else {
                    std::memcpy(&d, &v, 8);
                }
                slots[s.slot] = Slot::of(d);
                break;
            }
            if (s.slot >= 0) slots[s.slot] = s.is_signed ? Slot::of(sign_extend(v, s.size_bits)) : Slot::of(v);
            if (s.reg >= 0) registers[static_cast<std::size_t>(s.reg)] = s.is_signed ? static_cast<std::uint64_t>(sign_extend(v, s.size_bits)) : v;
            break;
        }
        case Step::Op::kText:
        case Step::Op::kSkip: {
            const std::uint64_t n = s.length_reg >= 0 ? registers[static_cast<std::size_t>(s.length_reg)] : s.count;
            if (c.end < c.at || n > (c.end - c.at) / std::max(1u, s.size_bits)) return false;
            if (s.slot >= 0) slots[s.slot] = text_slot(c.packet + c.at / 8, n);
            c.at += n * s.size_bits;
            break;
        }
        case Step::Op::kRepeat: {
            const std::uint64_t n = s.length_reg >= 0 ? registers[static_cast<std::size_t>(s.length_reg)] : s.count;
            if (n > c.end) return false;  // more elements than bits
            for (std::uint64_t i = 0; i < n; ++i) {
                const auto before = c.at;
                if (!decode(s.bodies[0], c, slots, registers)) return false;
                if (c.at == before) break;  // elements of no size: neither have the others
            }
            break;
        }
        case Step::Op::kVariant: {
            const auto tag = static_cast<std::int64_t>(registers[static_cast<std::size_t>(s.length_reg)]);
            std::size_t option = 0;
            for (; option < s.ranges.size(); ++option)
                if (std::any_of(s.ranges[option].begin(), s.ranges[option].end(), [&](const auto &r) { return tag >= r.first && tag <= r.second; })) break;
            if (option == s.ranges.size()) return false;
            if (!decode(s.bodies[option], c, slots, registers)) return false;
            break;
        }
        }
    }
    return c.at <= c.end;
}

}  // namespace opline::ctf
