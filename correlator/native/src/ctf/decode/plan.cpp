// SPDX-License-Identifier: MIT
#include "ctf/decode/plan.hpp"

#include <algorithm>

namespace opline::ctf {
namespace {

constexpr std::uint32_t kMaxRun = 1u << 24;  // bytes of fixed size in a row
constexpr std::size_t kMaxName = 512;        // of a field, with the names of the outer structures

// All elements of one size, without gaps.
bool is_even(const Type &element) {
    return ((element.is_integer() && !element.variable_length) || element.kind == Type::Kind::kReal) &&
           element.size_bits % std::max(1u, element.align_bits) == 0;
}

// Bytes in a row are no numbers: a BLOB, a UUID, an address.
FieldType type_of_array(const Type &t) {
    if (t.is_text()) return FieldType::kString;
    const bool numbers = t.element->is_integer() && t.element->size_bits > 8 && is_even(*t.element);
    return numbers ? FieldType::kIntegers : FieldType::kOther;
}

void collect(const Type &t, const std::string &name, FieldScope scope, std::vector<Leaf> &out) {
    if (name.size() > kMaxName)
        throw Unsupported("a field's name of more than " + std::to_string(kMaxName) + " characters");
    switch (t.kind) {
    case Type::Kind::kStruct:
        for (const auto &m : t.members) collect(*m.type, name.empty() ? m.name : name + "." + m.name, scope, out);
        return;
    case Type::Kind::kInteger:
    case Type::Kind::kEnum:
        out.push_back({{name, t.is_signed ? FieldType::kSigned : FieldType::kUnsigned, scope}, true});
        return;
    case Type::Kind::kReal: out.push_back({{name, FieldType::kReal, scope}, true}); return;
    case Type::Kind::kString: out.push_back({{name, FieldType::kString, scope}, true}); return;
    case Type::Kind::kArray:
    case Type::Kind::kSequence: {
        const FieldType type = type_of_array(t);
        out.push_back({{name, type, scope}, type != FieldType::kOther});
        return;
    }
    case Type::Kind::kVariant:
    case Type::Kind::kOption: out.push_back({{name, FieldType::kOther, scope}, false}); return;
    }
}

}  // namespace

std::vector<Leaf> leaves_of(const TypePtr &structure, FieldScope scope) {
    std::vector<Leaf> out;
    if (!structure) return out;
    if (structure->kind != Type::Kind::kStruct) throw Unsupported("fields that are no structure");
    collect(*structure, "", scope, out);
    return out;
}

const Compiler::Node &Compiler::locate(const Location &location, const Node &from) {
    auto nowhere = [&] { throw Unsupported("a length or tag that lies elsewhere: " + location.text()); };
    auto member = [](const Node &n, const std::string &name) -> const Node * {
        for (auto m = n.members.rbegin(); m != n.members.rend(); ++m)
            if ((*m)->name == name) return m->get();
        return nullptr;
    };
    const Node *at = &from;
    if (location.root == Location::Root::kOutward) {
        while (at && !member(*at, *location.path[0])) at = at->parent;
        // Then in the scopes before (CTF 1.8.3, 7.3.2).
        for (auto root = roots_.rbegin(); !at && root != roots_.rend(); ++root)
            if (member(*root->second, *location.path[0])) at = root->second.get();
    } else if (location.root != Location::Root::kInnermost) {
        auto root =
            std::find_if(roots_.rbegin(), roots_.rend(), [&](const auto &r) { return r.first == location.root; });
        at = root == roots_.rend() ? nullptr : root->second.get();
    }
    for (const auto &name : location.path) {
        if (!at) nowhere();
        at = name ? member(*at, *name) : at->parent;
    }
    if (!at || at->reg < 0) nowhere();
    if (static_cast<std::uint32_t>(at->reg) < before_) read_before_.insert(at->reg);
    return *at;
}

// Appends to the last run, or begins a run.
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

void Compiler::align(std::vector<Step> &steps, std::uint32_t bits) {
    if (bits <= 1) return;
    // After a run or a string the position is at a byte already.
    const bool at_byte = !steps.empty() && (steps.back().op == Step::Op::kRun || steps.back().op == Step::Op::kString);
    if (bits % 8 == 0) bit_ = 0;
    if (bits == 8 && at_byte) return;
    if (!steps.empty() && steps.back().op == Step::Op::kAlign && steps.back().align_bits >= bits) return;
    Step s;
    s.op = Step::Op::kAlign;
    s.align_bits = bits;
    steps.push_back(std::move(s));
}

// A byte holds bits of one byte order only: with two, the other reader decides.
void Compiler::passed(std::uint32_t size_bits, bool big_endian) {
    const int order = big_endian ? 1 : 0;
    if (bit_ != 0 && order_ >= 0 && order_ != order) throw Unsupported("a byte with fields of both byte orders");
    if (bit_ >= 0) bit_ = static_cast<int>((static_cast<std::uint32_t>(bit_) + size_bits) % 8);
    order_ = order;
}

void Compiler::integer(const Type &t, std::vector<Step> &steps, Node &node, bool leaf) {
    const auto slot = (*slot_of_)(t, leaf);
    node.type = &t;
    node.reg = static_cast<std::int32_t>(registers_++);
    align(steps, t.align_bits);
    const bool at_byte = !steps.empty() && (steps.back().op == Step::Op::kRun || steps.back().op == Step::Op::kString ||
                                            (steps.back().op == Step::Op::kAlign && steps.back().align_bits % 8 == 0));
    if (!t.big_endian && !t.reversed && !t.variable_length && t.form != Type::Form::kBoolean && t.size_bits % 8 == 0 &&
        (t.align_bits % 8 == 0 || at_byte)) {
        Read r;
        r.size = t.size_bits / 8;
        r.what = t.is_signed ? Read::What::kSigned : Read::What::kUnsigned;
        r.slot = slot;
        r.reg = node.reg;
        fixed(steps, r);
        return;
    }
    passed(t.size_bits, t.big_endian);
    Step s;
    s.op = t.variable_length ? Step::Op::kLeb : Step::Op::kInteger;
    s.size_bits = t.size_bits;
    s.is_signed = t.is_signed;
    s.big_endian = t.big_endian;
    s.reversed = t.reversed;
    s.boolean = t.form == Type::Form::kBoolean;
    s.slot = slot;
    s.reg = node.reg;
    steps.push_back(std::move(s));
}

void Compiler::real(const Type &t, std::vector<Step> &steps, bool leaf) {
    const auto slot = (*slot_of_)(t, leaf);
    align(steps, t.align_bits);
    if (!t.big_endian && !t.reversed && t.align_bits % 8 == 0) {
        Read r;
        r.size = t.size_bits / 8;
        r.what = r.size == 4 ? Read::What::kReal32 : Read::What::kReal64;
        r.slot = slot;
        fixed(steps, r);
        return;
    }
    passed(t.size_bits, t.big_endian);
    Step s;
    s.op = Step::Op::kReal;
    s.size_bits = t.size_bits;
    s.big_endian = t.big_endian;
    s.reversed = t.reversed;
    s.slot = slot;
    steps.push_back(std::move(s));
}

void Compiler::array(const Type &t, std::vector<Step> &steps, Node &node, bool leaf, Walk &walk) {
    const auto slot = (*slot_of_)(t, leaf);
    const Type &e = *t.element;
    const bool text = t.is_text();
    const auto length_reg = t.kind == Type::Kind::kSequence ? locate(t.location, *node.parent).reg : -1;
    walk.tag_reg = length_reg;
    align(steps, alignment(t));
    const bool uuid = (t.roles & bit(FieldRole::kUuid)) != 0;
    if ((text || uuid) && t.kind == Type::Kind::kArray) {
        Read r;
        r.size = static_cast<std::uint32_t>(std::min<std::uint64_t>(t.length, kMaxRun + 1));
        r.what = text ? Read::What::kText : Read::What::kBytes;
        r.slot = slot;
        fixed(steps, r);
        return;
    }
    Step s;
    s.slot = type_of_array(t) == FieldType::kOther ? -1 : slot;
    s.count = t.length;
    s.length_reg = length_reg;
    s.size_bits = e.size_bits;
    if (text) {
        s.op = Step::Op::kText;
    } else if (is_even(e)) {
        s.op = Step::Op::kBlock;
        s.is_signed = e.is_signed;
        s.big_endian = e.big_endian;
        s.reversed = e.reversed;
        walk.parts.push_back({&e, e.align_bits, -1, -1, false, {}, {}});
        passed(e.size_bits, e.big_endian);
    } else {
        s.op = Step::Op::kRepeat;
        Program body;
        walk.parts.emplace_back();
        compile(e, body.steps, node, false, walk.parts.back());
        s.bodies.push_back(std::move(body));
        node.members.clear();
        node.reg = -1;
    }
    bit_ = -1;
    steps.push_back(std::move(s));
}

void Compiler::variant(const Type &t, std::vector<Step> &steps, Node &node, bool leaf, Walk &walk) {
    (*slot_of_)(t, leaf);
    const Node &tag = locate(t.location, *node.parent);
    Step s;
    s.op = t.kind == Type::Kind::kVariant ? Step::Op::kVariant : Step::Op::kOption;
    s.length_reg = tag.reg;
    s.is_signed = tag.type->is_signed;
    s.ranges = selections_of(t, *tag.type);
    walk.tag_reg = tag.reg;
    walk.tag_signed = s.is_signed;
    walk.ranges = s.ranges;
    for (const auto &option : t.members) {
        bit_ = -1;
        Program body;
        walk.parts.emplace_back();
        compile(*option.type, body.steps, node, false, walk.parts.back());
        s.bodies.push_back(std::move(body));
        // The chosen option is not known afterwards: no field inside can be located.
        node.members.clear();
        node.reg = -1;
    }
    bit_ = -1;
    steps.push_back(std::move(s));
}

void Compiler::compile(const Type &t, std::vector<Step> &steps, Node &node, bool leaf, Walk &walk) {
    walk.type = &t;
    walk.align_bits = alignment(t);
    switch (t.kind) {
    case Type::Kind::kInteger:
    case Type::Kind::kEnum:
        integer(t, steps, node, leaf);
        walk.reg = node.reg;
        return;
    case Type::Kind::kReal: return real(t, steps, leaf);
    case Type::Kind::kString: {
        Step s;
        s.op = Step::Op::kString;
        s.slot = (*slot_of_)(t, leaf);
        align(steps, 8);
        steps.push_back(std::move(s));
        return;
    }
    case Type::Kind::kStruct:
        align(steps, alignment(t));
        for (const auto &m : t.members) {
            node.members.push_back(std::make_unique<Node>());
            Node &member = *node.members.back();
            member.name = m.name;
            member.parent = &node;
            walk.parts.emplace_back();
            compile(*m.type, steps, member, leaf, walk.parts.back());
        }
        return;
    case Type::Kind::kArray:
    case Type::Kind::kSequence: return array(t, steps, node, leaf, walk);
    case Type::Kind::kVariant:
    case Type::Kind::kOption: return variant(t, steps, node, leaf, walk);
    }
}

void Compiler::add(const TypePtr &structure, Location::Root root, const SlotOf &slot_of, Walk *walk) {
    if (!structure) return;
    if (structure->kind != Type::Kind::kStruct) throw Unsupported("fields that are no structure");
    slot_of_ = &slot_of;
    roots_.emplace_back(root, std::make_unique<Node>());
    Walk none;
    compile(*structure, steps_, *roots_.back().second, true, walk ? *walk : none);
    slot_of_ = nullptr;
}

void Compiler::add(const TypePtr &structure, Location::Root root, const std::vector<std::int32_t> &slots) {
    std::size_t next = 0;
    add(structure, root, [&](const Type &, bool leaf) { return leaf && next < slots.size() ? slots[next++] : -1; });
}

void Compiler::passed_before(const TypePtr &structure, Location::Root root) {
    std::vector<Step> steps;
    steps.swap(steps_);
    add(structure, root, [](const Type &, bool) { return -1; });
    steps.swap(steps_);
    before_ = registers_;
    bit_ = order_ = -1;
}

Program Compiler::take(const std::set<std::int32_t> &kept) {
    // Unused registers are dropped from the runs.
    std::vector<bool> used(registers_);
    for (const std::int32_t reg : kept)
        if (static_cast<std::size_t>(reg) < used.size()) used[static_cast<std::size_t>(reg)] = true;
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
            s.reads.erase(
                std::remove_if(s.reads.begin(), s.reads.end(), [](const Read &r) { return r.slot < 0 && r.reg < 0; }),
                s.reads.end());
            for (auto &b : s.bodies) self(self, b.steps);
        }
    };
    drop(drop, steps_);
    Program p;
    p.steps = std::move(steps_);
    p.registers = registers_;
    steps_.clear();
    roots_.clear();
    registers_ = before_ = 0;
    read_before_.clear();
    bit_ = order_ = -1;
    return p;
}

}  // namespace opline::ctf
