// SPDX-License-Identifier: MIT
#include "fields.hpp"

#include <string>

namespace opline::bt2 {
namespace {

using Part = FieldPath::Part;
using Read = FieldPath::Read;

bool is_number(const bt_field_class *fc) {
    return bt_field_class_type_is(bt_field_class_get_type(fc), BT_FIELD_CLASS_TYPE_INTEGER) &&
           bt_field_class_integer_get_field_value_range(fc) > 8;
}

Slot last_of(const bt_field *array) {
    const std::uint64_t n = bt_field_array_get_length(array);
    if (n == 0) return {};
    const bt_field *f = bt_field_array_borrow_element_field_by_index_const(array, n - 1);
    const bool is_signed = bt_field_class_type_is(bt_field_get_class_type(f), BT_FIELD_CLASS_TYPE_SIGNED_INTEGER);
    return is_signed ? Slot::of(static_cast<std::int64_t>(bt_field_integer_signed_get_value(f)))
                     : Slot::of(static_cast<std::uint64_t>(bt_field_integer_unsigned_get_value(f)));
}

// The leaves of a structure field class, nested structures as a.b.
void collect(const bt_field_class *fc, const std::string &prefix, Part part, std::vector<std::uint64_t> &at,
             ClassDecl &decl, std::vector<FieldPath> &paths) {
    if (!fc) return;
    const bt_field_class_type type = bt_field_class_get_type(fc);
    auto is = [type](bt_field_class_type t) { return bt_field_class_type_is(type, t); };
    if (is(BT_FIELD_CLASS_TYPE_STRUCTURE)) {
        const std::uint64_t n = bt_field_class_structure_get_member_count(fc);
        for (std::uint64_t i = 0; i < n; ++i) {
            auto member = bt_field_class_structure_borrow_member_by_index_const(fc, i);
            // source.ctf.fs has removed LTTng's underscore
            const std::string name = bt_field_class_structure_member_get_name(member);
            at.push_back(i);
            collect(bt_field_class_structure_member_borrow_field_class_const(member),
                    prefix.empty() ? name : prefix + "." + name, part, at, decl, paths);
            at.pop_back();
        }
        return;
    }
    FieldPath path;
    path.part = part;
    path.members = at;
    FieldType field = FieldType::kOther;
    if (is(BT_FIELD_CLASS_TYPE_UNSIGNED_INTEGER)) {
        path.read = Read::kUnsigned;
        field = FieldType::kUnsigned;
    } else if (is(BT_FIELD_CLASS_TYPE_SIGNED_INTEGER)) {
        path.read = Read::kSigned;
        field = FieldType::kSigned;
    } else if (is(BT_FIELD_CLASS_TYPE_SINGLE_PRECISION_REAL)) {
        path.read = Read::kReal32;
        field = FieldType::kReal;
    } else if (is(BT_FIELD_CLASS_TYPE_DOUBLE_PRECISION_REAL)) {
        path.read = Read::kReal64;
        field = FieldType::kReal;
    } else if (is(BT_FIELD_CLASS_TYPE_STRING)) {
        path.read = Read::kString;
        field = FieldType::kString;
    } else if (is(BT_FIELD_CLASS_TYPE_BOOL)) {
        path.read = Read::kBool;
        field = FieldType::kUnsigned;
    } else if (is(BT_FIELD_CLASS_TYPE_BIT_ARRAY)) {
        path.read = Read::kBits;
        field = FieldType::kUnsigned;
    } else if (is(BT_FIELD_CLASS_TYPE_ARRAY) && is_number(bt_field_class_array_borrow_element_field_class_const(fc))) {
        path.read = Read::kLast;
        field = FieldType::kIntegers;
    }
    decl.fields.push_back({prefix, field, part == Part::kPayload ? FieldScope::kPayload : FieldScope::kContext});
    paths.push_back(std::move(path));
}

const bt_field *part_of(const bt_event *event, Part part) {
    switch (part) {
    case Part::kPayload: return bt_event_borrow_payload_field_const(event);
    case Part::kCommonContext: return bt_event_borrow_common_context_field_const(event);
    case Part::kSpecificContext: break;
    }
    return bt_event_borrow_specific_context_field_const(event);
}

}  // namespace

EventClassState declare(const bt_event_class *cls, Domain domain, EventSink &consumer) {
    ClassDecl decl;
    const char *name = bt_event_class_get_name(cls);
    decl.name = name ? name : "";
    decl.domain = domain;
    std::vector<FieldPath> paths;
    std::vector<std::uint64_t> at;
    collect(bt_event_class_borrow_payload_field_class_const(cls), "", Part::kPayload, at, decl, paths);
    collect(
        bt_stream_class_borrow_event_common_context_field_class_const(bt_event_class_borrow_stream_class_const(cls)),
        "", Part::kCommonContext, at, decl, paths);
    collect(bt_event_class_borrow_specific_context_field_class_const(cls), "", Part::kSpecificContext, at, decl, paths);
    EventClassState state;
    state.plan = consumer.add_class(decl);
    for (auto w : state.plan.wanted) state.paths.push_back(paths[w]);
    return state;
}

void read_slots(const EventClassState &cls, const bt_event *event, Slot *slots) {
    const bt_field *parts[3] = {};
    for (const FieldPath &path : cls.paths) {
        const bt_field *&part = parts[static_cast<std::size_t>(path.part)];
        if (!part) part = part_of(event, path.part);
        const bt_field *f = part;
        for (auto i : path.members) f = bt_field_structure_borrow_member_field_by_index_const(f, i);
        switch (path.read) {
        case Read::kUnsigned:
            *slots = Slot::of(static_cast<std::uint64_t>(bt_field_integer_unsigned_get_value(f)));
            break;
        case Read::kSigned: *slots = Slot::of(static_cast<std::int64_t>(bt_field_integer_signed_get_value(f))); break;
        case Read::kReal32: *slots = Slot::of(static_cast<double>(bt_field_real_single_precision_get_value(f))); break;
        case Read::kReal64: *slots = Slot::of(bt_field_real_double_precision_get_value(f)); break;
        case Read::kString:
            *slots = Slot::of(std::string_view(bt_field_string_get_value(f), bt_field_string_get_length(f)));
            break;
        case Read::kBool: *slots = Slot::of(static_cast<std::uint64_t>(bt_field_bool_get_value(f) ? 1 : 0)); break;
        case Read::kBits:
            *slots = Slot::of(static_cast<std::uint64_t>(bt_field_bit_array_get_value_as_integer(f)));
            break;
        case Read::kLast: *slots = last_of(f); break;
        case Read::kNone: *slots = Slot(); break;
        }
        ++slots;
    }
}

}  // namespace opline::bt2
