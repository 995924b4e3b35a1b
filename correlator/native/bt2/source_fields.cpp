// SPDX-License-Identifier: MIT
// Types as trace IR field classes, and bytes as trace IR fields.
#include <algorithm>
#include <cstring>

#include "source.hpp"

namespace opline::bt2 {
namespace {

using ctf::Type;
using Kind = Type::Kind;

constexpr std::uint64_t kMaxStaticLength = 1u << 20;  // trace IR makes every element of an array beforehand

template <class Status>
void check(Status status, const char *what) {
    if (static_cast<int>(status) != 0) throw SourceError(std::string("cannot make ") + what);
}

template <class T>
T *made(T *object, const char *what) {
    if (!object) throw SourceError(std::string("cannot make ") + what);
    return object;
}

bt_field_class_integer_preferred_display_base base_of(const Type &t) {
    switch (t.base) {
    case 2: return BT_FIELD_CLASS_INTEGER_PREFERRED_DISPLAY_BASE_BINARY;
    case 8: return BT_FIELD_CLASS_INTEGER_PREFERRED_DISPLAY_BASE_OCTAL;
    case 16: return BT_FIELD_CLASS_INTEGER_PREFERRED_DISPLAY_BASE_HEXADECIMAL;
    default: return BT_FIELD_CLASS_INTEGER_PREFERRED_DISPLAY_BASE_DECIMAL;
    }
}

void add_mappings(bt_field_class *fc, const Type &t) {
    std::vector<std::string> labels;  // in the order of the metadata
    std::map<std::string, std::vector<ctf::Range>> ranges;
    for (const auto &r : t.ranges) {
        if (!ranges.count(r.label)) labels.push_back(r.label);
        ranges[r.label].push_back(r.range);
    }
    for (const auto &label : labels) {
        if (t.is_signed) {
            auto set = made(bt_integer_range_set_signed_create(), "a range");
            for (const auto &r : ranges[label])
                check(bt_integer_range_set_signed_add_range(set, r.low, r.high), "a range");
            check(bt_field_class_enumeration_signed_add_mapping(fc, label.c_str(), set), "a mapping");
            bt_integer_range_set_signed_put_ref(set);
        } else {
            auto set = made(bt_integer_range_set_unsigned_create(), "a range");
            for (const auto &r : ranges[label])
                check(bt_integer_range_set_unsigned_add_range(set, static_cast<std::uint64_t>(r.low),
                                                              static_cast<std::uint64_t>(r.high)),
                      "a range");
            check(bt_field_class_enumeration_unsigned_add_mapping(fc, label.c_str(), set), "a mapping");
            bt_integer_range_set_unsigned_put_ref(set);
        }
    }
}

bt_field_class *integer_class(bt_trace_class *trace, const Type &t) {
    if (t.form == Type::Form::kBoolean) return made(bt_field_class_bool_create(trace), "a boolean");
    if (t.form == Type::Form::kBits) return made(bt_field_class_bit_array_create(trace, t.size_bits), "a bit array");
    const bool mapped = t.kind == Kind::kEnum;
    bt_field_class *fc = made(t.is_signed ? (mapped ? bt_field_class_enumeration_signed_create(trace)
                                                    : bt_field_class_integer_signed_create(trace))
                                          : (mapped ? bt_field_class_enumeration_unsigned_create(trace)
                                                    : bt_field_class_integer_unsigned_create(trace)),
                              "an integer");
    bt_field_class_integer_set_field_value_range(fc, t.variable_length ? 64 : t.size_bits);
    bt_field_class_integer_set_preferred_display_base(fc, base_of(t));
    if (mapped) add_mappings(fc, t);
    return fc;
}

void set_integer(const Type &t, bt_field *field, std::uint64_t v) {
    if (t.form == Type::Form::kBoolean) bt_field_bool_set_value(field, v ? BT_TRUE : BT_FALSE);
    else if (t.form == Type::Form::kBits) bt_field_bit_array_set_value_as_integer(field, v);
    else if (t.is_signed) bt_field_integer_signed_set_value(field, static_cast<std::int64_t>(v));
    else bt_field_integer_unsigned_set_value(field, v);
}

bool has(const ctf::Cursor &c, std::uint64_t bits) { return c.at <= c.end && c.end - c.at >= bits; }

bool fill_integer(const ctf::Walk &w, ctf::Cursor &c, bt_field *field, std::vector<std::uint64_t> &registers) {
    const Type &t = *w.type;
    std::uint64_t v;
    std::uint32_t bytes;
    if (t.variable_length) {
        if (!ctf::read_leb(c, t.is_signed, v, bytes)) return false;
    } else {
        if (!has(c, t.size_bits)) return false;
        v = ctf::read_number(c.packet, c.at, t.size_bits, t.big_endian, t.reversed, t.is_signed,
                             t.form == Type::Form::kBoolean);
        c.at += t.size_bits;
    }
    if (w.reg >= 0) registers[static_cast<std::size_t>(w.reg)] = v;
    if (field) set_integer(t, field, v);
    return true;
}

bool fill_real(const Type &t, ctf::Cursor &c, bt_field *field) {
    if (!has(c, t.size_bits)) return false;
    const std::uint64_t v = ctf::read_number(c.packet, c.at, t.size_bits, t.big_endian, t.reversed, false, false);
    c.at += t.size_bits;
    if (!field) return true;
    if (t.size_bits == 32) {
        const auto bits = static_cast<std::uint32_t>(v);
        float f;
        std::memcpy(&f, &bits, 4);
        bt_field_real_single_precision_set_value(field, f);
    } else {
        double d;
        std::memcpy(&d, &v, 8);
        bt_field_real_double_precision_set_value(field, d);
    }
    return true;
}

void set_text(bt_field *field, const std::uint8_t *p, std::size_t size) {
    if (!field) return;
    bt_field_string_clear(field);
    check(bt_field_string_append_with_length(field, reinterpret_cast<const char *>(p),
                                             strnlen(reinterpret_cast<const char *>(p), size)),
          "a text");
}

bool fill_string(ctf::Cursor &c, bt_field *field) {
    if (!has(c, 8)) return false;
    const std::uint8_t *p = c.packet + c.at / 8;
    const void *nul = std::memchr(p, 0, (c.end - c.at) / 8);
    if (!nul) return false;
    const auto size = static_cast<std::size_t>(static_cast<const std::uint8_t *>(nul) - p);
    set_text(field, p, size);
    c.at += (size + 1) * 8;
    return true;
}

bool fill_array(const ctf::Walk &w, ctf::Cursor &c, bt_field *field, std::vector<std::uint64_t> &registers) {
    const Type &t = *w.type;
    const std::uint64_t n = w.tag_reg >= 0 ? registers[static_cast<std::size_t>(w.tag_reg)] : t.length;
    if (t.is_text()) {
        if (n > (c.end - c.at) / 8) return false;
        set_text(field, c.packet + c.at / 8, n);
        c.at += n * 8;
        return true;
    }
    if (n > c.end - c.at) return false;  // more elements than bits
    if (field && t.kind == Kind::kSequence) check(bt_field_array_dynamic_set_length(field, n), "an array");
    for (std::uint64_t i = 0; i < n; ++i)
        if (!fill(w.parts[0], c, field ? bt_field_array_borrow_element_field_by_index(field, i) : nullptr, registers))
            return false;
    return true;
}

bool fill_choice(const ctf::Walk &w, ctf::Cursor &c, bt_field *field, std::vector<std::uint64_t> &registers) {
    const std::uint64_t tag = registers[static_cast<std::size_t>(w.tag_reg)];
    std::size_t option = 0;
    while (option < w.ranges.size() && !ctf::in_ranges(w.ranges[option], tag, w.tag_signed)) ++option;
    const bool found = option < w.parts.size();
    if (w.type->kind == Kind::kOption) {
        if (field) bt_field_option_set_has_field(field, found ? BT_TRUE : BT_FALSE);
        return !found || fill(w.parts[0], c, field ? bt_field_option_borrow_field(field) : nullptr, registers);
    }
    if (!found) return false;
    if (field) check(bt_field_variant_select_option_by_index(field, option), "a variant");
    return fill(w.parts[option], c, field ? bt_field_variant_borrow_selected_option_field(field) : nullptr, registers);
}

}  // namespace

bt_field_class *structure_of(bt_trace_class *trace, const ctf::Walk &w, const std::vector<bool> &wanted,
                             Lengths &lengths) {
    bt_field_class *fc = made(bt_field_class_structure_create(trace), "a structure");
    for (std::size_t i = 0; i < w.parts.size(); ++i) {
        if (!wanted.empty() && !wanted[i]) continue;
        bt_field_class *member = field_class_of(trace, w.parts[i], lengths);
        check(bt_field_class_structure_append_member(fc, w.type->members[i].name.c_str(), member), "a structure");
        bt_field_class_put_ref(member);
    }
    return fc;
}

bt_field_class *field_class_of(bt_trace_class *trace, const ctf::Walk &w, Lengths &lengths) {
    const Type &t = *w.type;
    switch (t.kind) {
    case Kind::kInteger:
    case Kind::kEnum: {
        bt_field_class *fc = integer_class(trace, t);
        if (w.reg >= 0 && !t.is_signed && t.form == Type::Form::kNumber) lengths[w.reg] = fc;
        return fc;
    }
    case Kind::kReal:
        return made(t.size_bits == 32 ? bt_field_class_real_single_precision_create(trace)
                                      : bt_field_class_real_double_precision_create(trace),
                    "a real number");
    case Kind::kString: return made(bt_field_class_string_create(trace), "a text");
    case Kind::kStruct: return structure_of(trace, w, {}, lengths);
    case Kind::kArray:
    case Kind::kSequence: {
        if (t.is_text()) return made(bt_field_class_string_create(trace), "a text");
        if (t.kind == Kind::kArray && t.length > kMaxStaticLength)
            throw SourceError("an array of " + std::to_string(t.length) + " elements is too long for trace IR");
        bt_field_class *element = field_class_of(trace, w.parts[0], lengths);
        auto length = lengths.find(w.tag_reg);
        bt_field_class *fc =
            made(t.kind == Kind::kArray ? bt_field_class_array_static_create(trace, element, t.length)
                                        : bt_field_class_array_dynamic_create(
                                              trace, element, length == lengths.end() ? nullptr : length->second),
                 "an array");
        bt_field_class_put_ref(element);
        return fc;
    }
    case Kind::kVariant: {
        bt_field_class *fc = made(bt_field_class_variant_create(trace, nullptr), "a variant");
        for (std::size_t i = 0; i < t.members.size(); ++i) {
            const std::string name = t.members[i].name.empty() ? "option" + std::to_string(i) : t.members[i].name;
            bt_field_class *option = field_class_of(trace, w.parts[i], lengths);
            check(bt_field_class_variant_without_selector_append_option(fc, name.c_str(), option), "a variant");
            bt_field_class_put_ref(option);
        }
        return fc;
    }
    case Kind::kOption: {
        bt_field_class *content = field_class_of(trace, w.parts[0], lengths);
        bt_field_class *fc = made(bt_field_class_option_without_selector_create(trace, content), "an optional field");
        bt_field_class_put_ref(content);
        return fc;
    }
    }
    throw SourceError("a type that trace IR does not have");
}

bool fill(const ctf::Walk &w, ctf::Cursor &c, bt_field *field, std::vector<std::uint64_t> &registers) {
    const Type &t = *w.type;
    c.at = (c.at + w.align_bits - 1) & ~std::uint64_t{w.align_bits - 1};
    if (c.at > c.end) return false;
    switch (t.kind) {
    case Kind::kInteger:
    case Kind::kEnum: return fill_integer(w, c, field, registers);
    case Kind::kReal: return fill_real(t, c, field);
    case Kind::kString: return fill_string(c, field);
    case Kind::kStruct:
        for (std::size_t i = 0; i < w.parts.size(); ++i)
            if (!fill(w.parts[i], c, field ? bt_field_structure_borrow_member_field_by_index(field, i) : nullptr,
                      registers))
                return false;
        return true;
    case Kind::kArray:
    case Kind::kSequence: return fill_array(w, c, field, registers);
    case Kind::kVariant:
    case Kind::kOption: return fill_choice(w, c, field, registers);
    }
    return false;
}

}  // namespace opline::bt2
