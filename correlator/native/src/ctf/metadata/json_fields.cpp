// SPDX-License-Identifier: MIT
#include "ctf/metadata/json_fields.hpp"

namespace opline::ctf {
namespace {

using Kind = Type::Kind;

const std::map<std::string, Location::Root> kOrigins = {
    {"packet-header", Location::Root::kPacketHeader},
    {"packet-context", Location::Root::kPacketContext},
    {"event-record-header", Location::Root::kEventHeader},
    {"event-record-common-context", Location::Root::kCommonContext},
    {"event-record-specific-context", Location::Root::kSpecificContext},
    {"event-record-payload", Location::Root::kPayload}};

// Bytes: of a text, or of a BLOB.
TypePtr byte(bool text) {
    auto t = std::make_shared<Type>();
    t->size_bits = t->align_bits = 8;
    t->text = text;
    return t;
}

}  // namespace

std::uint32_t JsonFields::alignment_of(const Json &f, const char *name) const {
    const auto bits = number_of(f, name, 1);
    if (bits == 0 || (bits & (bits - 1)) != 0 || bits > 4096) unsupported("an odd alignment");
    return static_cast<std::uint32_t>(bits);
}

Location JsonFields::location(const Json &f, const char *name) const {
    const Json &l = property(f, name);
    if (!l.is_object()) unsupported(std::string("a \"") + name + "\" that is no object");
    Location out;
    out.root = Location::Root::kInnermost;
    if (l.contains("origin")) {
        auto it = kOrigins.find(text_of(l, "origin"));
        if (it == kOrigins.end()) malformed("a field location with an unknown origin");
        out.root = it->second;
    }
    const Json &path = property(l, "path");
    if (!path.is_array() || path.empty() || path.size() > kMaxDepth) malformed("a field location without a path");
    for (const auto &p : path) {
        if (p.is_null()) out.path.emplace_back(std::nullopt);
        else out.path.emplace_back(text(p, "path"));
    }
    return out;
}

std::vector<Range> JsonFields::ranges(const Json &set) const {
    if (!set.is_array() || set.empty()) malformed("a set of ranges without a range");
    std::vector<Range> out;
    for (const auto &r : set) {
        if (!r.is_array() || r.size() != 2) malformed("a range that has not two ends");
        out.push_back({integer(r[0], "range"), integer(r[1], "range")});
    }
    return out;
}

void JsonFields::take_roles(const Json &f, Type &t) const {
    auto it = f.find("roles");
    if (it == f.end()) return;
    if (!it->is_array()) malformed("\"roles\" is to be a list");
    for (const auto &r : *it) {
        auto role = roles_->find(text(r, "roles"));
        if (role != roles_->end()) t.roles |= bit(role->second);
    }
}

void JsonFields::bit_array(const Json &f, Type &t) const {
    const auto size = number_of(f, "length");
    if (size == 0 || size > 64) unsupported("a field of " + std::to_string(size) + " bits");
    t.size_bits = static_cast<std::uint32_t>(size);
    t.align_bits = alignment_of(f, "alignment");
    const std::string order = text_of(f, "byte-order");
    if (order != "big-endian" && order != "little-endian") malformed("a byte order \"" + order + "\"");
    t.big_endian = order == "big-endian";
    const std::string standard = t.big_endian ? "last-to-first" : "first-to-last";
    const std::string bits = text_of(f, "bit-order", standard.c_str());
    if (bits != "last-to-first" && bits != "first-to-last") malformed("a bit order \"" + bits + "\"");
    t.reversed = bits != standard;
}

void JsonFields::integer_class(const Json &f, Type &t, bool is_signed) const {
    t.is_signed = is_signed;
    t.base = static_cast<std::uint8_t>(number_of(f, "preferred-display-base", 10));
    take_roles(f, t);
    auto it = f.find("mappings");
    if (it == f.end() || it->empty()) return;
    if (!it->is_object()) malformed("\"mappings\" is to be an object");
    t.kind = Kind::kEnum;
    for (const auto &[label, set] : it->items())
        for (const auto &r : ranges(set)) t.ranges.push_back({label, r});
}

void JsonFields::check_encoding(const Json &f) const {
    if (const auto encoding = text_of(f, "encoding", "utf-8"); encoding != "utf-8")
        unsupported("a text in " + encoding);
}

TypePtr JsonFields::field_class(const Json &f, std::uint32_t depth) {
    if (depth > kMaxDepth) unsupported("types nested deeper than " + std::to_string(kMaxDepth));
    if (f.is_string()) return field_class(aliased(f), depth + 1);
    if (!f.is_object()) malformed("a field class that is neither an object nor a name");
    check_extensions(f);
    auto out = std::make_shared<Type>();
    Type &t = *out;
    const std::string type = text_of(f, "type");
    if (type == "fixed-length-unsigned-integer" || type == "fixed-length-signed-integer") {
        bit_array(f, t);
        integer_class(f, t, type == "fixed-length-signed-integer");
    } else if (type == "variable-length-unsigned-integer" || type == "variable-length-signed-integer") {
        t.variable_length = true;
        t.align_bits = 8;
        integer_class(f, t, type == "variable-length-signed-integer");
    } else if (type == "fixed-length-boolean" || type == "fixed-length-bit-array" || type == "fixed-length-bit-map") {
        bit_array(f, t);
        t.form = type == "fixed-length-boolean" ? Type::Form::kBoolean : Type::Form::kBits;
    } else if (type == "fixed-length-floating-point-number") {
        t.kind = Kind::kReal;
        bit_array(f, t);
        if (t.size_bits != 32 && t.size_bits != 64)
            unsupported("a floating-point number of " + std::to_string(t.size_bits) + " bits");
    } else if (type == "null-terminated-string") {
        check_encoding(f);
        t.kind = Kind::kString;
        t.align_bits = 8;
    } else if (type == "static-length-string" || type == "static-length-blob") {
        const bool is_text = type == "static-length-string";
        if (is_text) check_encoding(f);
        t.kind = Kind::kArray;
        t.length = number_of(f, "length");
        t.element = byte(is_text);
        t.grow(*t.element);
        take_roles(f, t);
        if ((t.roles & bit(FieldRole::kUuid)) != 0 && t.length != 16) malformed("a uuid that has not 16 bytes");
    } else if (type == "dynamic-length-string" || type == "dynamic-length-blob") {
        const bool is_text = type == "dynamic-length-string";
        if (is_text) check_encoding(f);
        t.kind = Kind::kSequence;
        t.location = location(f, "length-field-location");
        t.element = byte(is_text);
        t.grow(*t.element);
    } else if (type == "static-length-array" || type == "dynamic-length-array") {
        t.kind = type == "static-length-array" ? Kind::kArray : Kind::kSequence;
        t.align_bits = alignment_of(f, "minimum-alignment");
        if (t.kind == Kind::kArray) t.length = number_of(f, "length");
        else t.location = location(f, "length-field-location");
        t.element = field_class(property(f, "element-field-class"), depth + 1);
        t.grow(*t.element);
    } else if (type == "structure") {
        t.kind = Kind::kStruct;
        t.align_bits = alignment_of(f, "minimum-alignment");
        if (auto it = f.find("member-classes"); it != f.end()) members(*it, t, depth);
    } else if (type == "optional") {
        t.kind = Kind::kOption;
        t.location = location(f, "selector-field-location");
        t.members.push_back({"", field_class(property(f, "field-class"), depth + 1)});
        t.grow(*t.members[0].type);
        // Without ranges the selector is a boolean, whose value is 0 or 1.
        t.selections.push_back(f.contains("selector-field-ranges") ? ranges(f["selector-field-ranges"])
                                                                   : std::vector<Range>{{1, 1}});
    } else if (type == "variant") {
        t.kind = Kind::kVariant;
        t.location = location(f, "selector-field-location");
        options(property(f, "options"), t, depth);
    } else {
        unsupported("a field class \"" + type + "\"");
    }
    return out;
}

void JsonFields::members(const Json &list, Type &t, std::uint32_t depth) {
    if (!list.is_array()) malformed("\"member-classes\" is to be a list");
    std::set<std::string> names;
    for (const auto &m : list) {
        if (!m.is_object()) malformed("a member that is no object");
        check_extensions(m);
        t.members.push_back({text_of(m, "name"), field_class(property(m, "field-class"), depth + 1)});
        if (!names.insert(t.members.back().name).second) malformed("two members \"" + t.members.back().name + "\"");
        t.grow(*t.members.back().type);
    }
}

void JsonFields::options(const Json &list, Type &t, std::uint32_t depth) {
    if (!list.is_array() || list.empty()) malformed("a variant without options");
    for (const auto &o : list) {
        if (!o.is_object()) malformed("an option that is no object");
        check_extensions(o);
        t.members.push_back({text_of(o, "name", ""), field_class(property(o, "field-class"), depth + 1)});
        t.grow(*t.members.back().type);
        t.selections.push_back(ranges(property(o, "selector-field-ranges")));
    }
}

}  // namespace opline::ctf
