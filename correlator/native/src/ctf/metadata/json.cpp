// SPDX-License-Identifier: MIT
// Parser of CTF 2 metadata: a JSON text sequence (RFC 7464) of fragments, CTF2-SPEC-2.0 section 5. Whatever a fragment
// says that changes how bytes are read and is not known here is Unsupported; attributes never are.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "ctf/metadata/types.hpp"

namespace opline::ctf {
namespace {

using Json = nlohmann::json;
using Kind = Type::Kind;

const std::map<std::string, Role> kHeaderRoles = {{"packet-magic-number", Role::kMagic},
                                                  {"metadata-stream-uuid", Role::kUuid},
                                                  {"data-stream-class-id", Role::kStreamClassId},
                                                  {"data-stream-id", Role::kStreamId}};
const std::map<std::string, Role> kContextRoles = {
    {"default-clock-timestamp", Role::kBegin},     {"packet-end-default-clock-timestamp", Role::kEnd},
    {"packet-content-length", Role::kContentSize}, {"packet-total-length", Role::kPacketSize},
    {"packet-sequence-number", Role::kSequence},   {"discarded-event-record-counter-snapshot", Role::kDiscarded}};
const std::map<std::string, Role> kEventRoles = {{"event-record-class-id", Role::kEventId},
                                                 {"default-clock-timestamp", Role::kTimestamp}};
const std::map<std::string, Role> kNoRoles;

const std::map<std::string, Location::Root> kOrigins = {
    {"packet-header", Location::Root::kPacketHeader},
    {"packet-context", Location::Root::kPacketContext},
    {"event-record-header", Location::Root::kEventHeader},
    {"event-record-common-context", Location::Root::kCommonContext},
    {"event-record-specific-context", Location::Root::kSpecificContext},
    {"event-record-payload", Location::Root::kPayload}};

// lttng-tools' names of lttng_ust_tracepoint_loglevel's values, in their order.
const char *const kLogLevels[] = {"emergency",    "alert",      "critical",       "error",         "warning",
                                  "notice",       "info",       "debug:system",   "debug:program", "debug:process",
                                  "debug:module", "debug:unit", "debug:function", "debug:line",    "debug"};

class Parser {
  public:
    Metadata run(std::string_view text) {
        meta_.major = 2;
        std::size_t at = 0;
        while (at < text.size()) {
            if (text[at] != '\x1e') throw Malformed("metadata byte " + std::to_string(at) + ": no record begins here");
            const std::size_t end = std::min(text.find('\x1e', at + 1), text.size());
            ++number_;
            fragment(text.substr(at + 1, end - at - 1));
            at = end;
        }
        if (number_ == 0) throw Malformed("the metadata has no fragment");
        return std::move(meta_);
    }

  private:
    [[noreturn]] void unsupported(const std::string &what) const {
        throw Unsupported("metadata fragment " + std::to_string(number_) + ": " + what);
    }
    [[noreturn]] void malformed(const std::string &what) const {
        throw Malformed("metadata fragment " + std::to_string(number_) + ": " + what);
    }

    const Json &property(const Json &o, const char *name) const {
        auto it = o.find(name);
        if (it == o.end()) malformed(std::string("\"") + name + "\" is missing");
        return *it;
    }
    std::string text(const Json &v, const char *name) const {
        if (!v.is_string()) malformed(std::string("\"") + name + "\" is to be a text");
        return v.get<std::string>();
    }
    std::string text_of(const Json &o, const char *name, const char *otherwise = nullptr) const {
        if (otherwise && !o.contains(name)) return otherwise;
        return text(property(o, name), name);
    }
    std::uint64_t number_of(const Json &o, const char *name,
                            std::optional<std::uint64_t> otherwise = std::nullopt) const {
        if (otherwise && !o.contains(name)) return *otherwise;
        const Json &v = property(o, name);
        if (!v.is_number_unsigned()) malformed(std::string("\"") + name + "\" is to be a whole number, not below 0");
        return v.get<std::uint64_t>();
    }
    std::int64_t integer(const Json &v, const char *name) const {
        if (!v.is_number_integer()) malformed(std::string("\"") + name + "\" is to be a whole number");
        return v.is_number_unsigned() ? static_cast<std::int64_t>(v.get<std::uint64_t>()) : v.get<std::int64_t>();
    }

    void fragment(std::string_view body) {
        const Json f = Json::parse(body.begin(), body.end(), nullptr, false);
        if (f.is_discarded() || !f.is_object()) malformed("no JSON object, or one that is cut off");
        const std::string type = text_of(f, "type");
        if ((number_ == 1) != (type == "preamble")) malformed("the first fragment, and no other, is the preamble");
        if (type == "preamble") return preamble(f);
        check_extensions(f);
        if (type == "field-class-alias") {
            const std::string name = text_of(f, "name");
            if (aliases_.count(name)) malformed("a second alias \"" + name + "\"");
            const Json &body = property(f, "field-class");
            if (body.is_string()) aliased(body);
            aliases_[name] = body;
        } else if (type == "trace-class") {
            trace_class(f);
        } else if (type == "clock-class") {
            clock_class(f);
        } else if (type == "data-stream-class") {
            stream_class(f);
        } else if (type == "event-record-class") {
            event_class(f);
        } else {
            unsupported("of type \"" + type + "\"");
        }
    }

    void check_extensions(const Json &o) const {
        auto it = o.find("extensions");
        if (it == o.end() || it->empty()) return;
        unsupported("an extension of the format" + (it->is_object() ? ": " + it->begin().key() : std::string()));
    }

    void preamble(const Json &f) {
        if (const auto version = number_of(f, "version"); version != 2) unsupported("CTF " + std::to_string(version));
        check_extensions(f);
        if (auto it = f.find("uuid"); it != f.end()) {
            if (!it->is_array() || it->size() != 16) malformed("\"uuid\" is to have 16 bytes");
            meta_.packet_uuid.emplace();
            for (std::size_t i = 0; i < 16; ++i)
                (*meta_.packet_uuid)[i] = static_cast<std::uint8_t>(integer((*it)[i], "uuid"));
        }
    }

    void trace_class(const Json &f) {
        meta_.uuid = text_of(f, "uid", "");
        if (auto it = f.find("environment"); it != f.end()) {
            if (!it->is_object()) malformed("\"environment\" is to be an object");
            for (const auto &[name, value] : it->items())
                meta_.env[name] = value.is_string() ? EnvValue{value.get<std::string>(), false}
                                                    : EnvValue{std::to_string(integer(value, "environment")), true};
        }
        meta_.packet_header = scope(f, "packet-header-field-class", kHeaderRoles);
    }

    void clock_class(const Json &f) {
        ClockDecl c;
        c.name = text_of(f, "name", "");
        c.uuid = text_of(f, "uid", "");
        c.description = text_of(f, "description", "");
        c.frequency = number_of(f, "frequency");
        c.precision = number_of(f, "precision", 0);
        if (c.frequency == 0) malformed("a clock of 0 Hz");
        if (auto origin = f.find("origin"); origin != f.end()) c.unix_epoch = *origin == "unix-epoch";
        if (auto offset = f.find("offset-from-origin"); offset != f.end()) {
            if (!offset->is_object()) malformed("\"offset-from-origin\" is to be an object");
            if (offset->contains("seconds")) c.offset_s = integer((*offset)["seconds"], "seconds");
            c.offset = static_cast<std::int64_t>(number_of(*offset, "cycles", 0));
        }
        meta_.clocks[text_of(f, "id")] = std::move(c);
    }

    void stream_class(const Json &f) {
        StreamClassDecl s;
        s.id = number_of(f, "id", 0);
        const std::string clock = text_of(f, "default-clock-class-id", "");
        if (clock.empty()) unsupported("a data stream class without a clock");
        if (!meta_.clocks.count(clock)) malformed("no clock class has the id \"" + clock + "\"");
        s.packet_context = scope(f, "packet-context-field-class", kContextRoles);
        s.event_header = scope(f, "event-record-header-field-class", kEventRoles);
        s.event_context = scope(f, "event-record-common-context-field-class", kNoRoles);
        meta_.streams[s.id] = std::move(s);
    }

    void event_class(const Json &f) {
        EventDecl e;
        e.name = text_of(f, "name", "");
        e.id = number_of(f, "id", 0);
        e.stream_id = number_of(f, "data-stream-class-id", 0);
        e.context = scope(f, "specific-context-field-class", kNoRoles);
        e.payload = scope(f, "payload-field-class", kNoRoles);
        if (auto a = f.find("attributes"); a != f.end() && a->is_object() && a->contains("lttng.org,2009")) {
            const Json &lttng = (*a)["lttng.org,2009"];
            auto of = [&](const char *name) {
                return lttng.is_object() && lttng.contains(name) && lttng[name].is_string()
                           ? lttng[name].get<std::string>()
                           : std::string();
            };
            e.emf_uri = of("emf-uri");
            const auto level = std::find(std::begin(kLogLevels), std::end(kLogLevels), of("log-level"));
            if (level != std::end(kLogLevels)) e.log_level = static_cast<int>(level - std::begin(kLogLevels));
        }
        meta_.events.push_back(std::move(e));
    }

    // The roots. A packet's cpu_id has no role in CTF 2: LTTng calls it so in both versions.
    TypePtr scope(const Json &f, const char *name, const std::map<std::string, Role> &roles) {
        auto it = f.find(name);
        if (it == f.end()) return nullptr;
        roles_ = &roles;
        TypePtr type = field_class(*it, 1);
        if (type->kind != Kind::kStruct) malformed(std::string("\"") + name + "\" is to be a structure");
        if (roles_ == &kContextRoles) {
            auto out = std::make_shared<Type>(*type);
            for (auto &m : out->members)
                if (m.name == "cpu_id" && m.type->is_integer()) {
                    auto cpu = std::make_shared<Type>(*m.type);
                    cpu->roles |= bit(Role::kCpu);
                    m.type = cpu;
                }
            type = out;
        }
        if ((nodes_ += type->nodes) > kMaxNodesInAll)
            unsupported("more than " + std::to_string(kMaxNodesInAll) + " fields in all");
        return type;
    }

    // An alias is compiled where it is used: what its roles mean depends on the scope. It names earlier ones only.
    const Json &aliased(const Json &name) const {
        auto alias = aliases_.find(name.get<std::string>());
        if (alias == aliases_.end()) malformed("no field class alias \"" + name.get<std::string>() + "\"");
        return alias->second;
    }

    std::uint32_t alignment_of(const Json &f, const char *name) const {
        const auto bits = number_of(f, name, 1);
        if (bits == 0 || (bits & (bits - 1)) != 0 || bits > 4096) unsupported("an odd alignment");
        return static_cast<std::uint32_t>(bits);
    }

    Location location(const Json &f, const char *name) const {
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

    std::vector<Range> ranges(const Json &set) const {
        if (!set.is_array() || set.empty()) malformed("a set of ranges without a range");
        std::vector<Range> out;
        for (const auto &r : set) {
            if (!r.is_array() || r.size() != 2) malformed("a range that has not two ends");
            out.push_back({integer(r[0], "range"), integer(r[1], "range")});
        }
        return out;
    }

    void take_roles(const Json &f, Type &t) const {
        auto it = f.find("roles");
        if (it == f.end()) return;
        if (!it->is_array()) malformed("\"roles\" is to be a list");
        for (const auto &r : *it) {
            auto role = roles_->find(text(r, "roles"));
            if (role != roles_->end()) t.roles |= bit(role->second);
        }
    }

    void bit_array(const Json &f, Type &t) const {
        const auto size = number_of(f, "length");
        if (size == 0 || size > 64) unsupported("a field of " + std::to_string(size) + " bits");
        t.size_bits = static_cast<std::uint32_t>(size);
        t.align_bits = alignment_of(f, "alignment");
        const std::string order = text_of(f, "byte-order");
        if (order != "big-endian" && order != "little-endian") malformed("a byte order \"" + order + "\"");
        t.big_endian = order == "big-endian";
        const std::string usual = t.big_endian ? "last-to-first" : "first-to-last";
        const std::string bits = text_of(f, "bit-order", usual.c_str());
        if (bits != "last-to-first" && bits != "first-to-last") malformed("a bit order \"" + bits + "\"");
        t.reversed = bits != usual;
    }

    void integer_class(const Json &f, Type &t, bool is_signed) const {
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

    // Bytes: of a text, or of a BLOB.
    static TypePtr byte(bool text) {
        auto t = std::make_shared<Type>();
        t->size_bits = t->align_bits = 8;
        t->text = text;
        return t;
    }

    void check_encoding(const Json &f) const {
        if (const auto encoding = text_of(f, "encoding", "utf-8"); encoding != "utf-8")
            unsupported("a text in " + encoding);
    }

    TypePtr field_class(const Json &f, std::uint32_t depth) {
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
        } else if (type == "fixed-length-boolean" || type == "fixed-length-bit-array" ||
                   type == "fixed-length-bit-map") {
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
            if ((t.roles & bit(Role::kUuid)) != 0 && t.length != 16) malformed("a uuid that has not 16 bytes");
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
            const Json &options = property(f, "options");
            if (!options.is_array() || options.empty()) malformed("a variant without options");
            for (const auto &o : options) {
                if (!o.is_object()) malformed("an option that is no object");
                check_extensions(o);
                t.members.push_back({text_of(o, "name", ""), field_class(property(o, "field-class"), depth + 1)});
                t.grow(*t.members.back().type);
                t.selections.push_back(ranges(property(o, "selector-field-ranges")));
            }
        } else {
            unsupported("a field class \"" + type + "\"");
        }
        return out;
    }

    void members(const Json &list, Type &t, std::uint32_t depth) {
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

    Metadata meta_;
    std::map<std::string, Json> aliases_;
    const std::map<std::string, Role> *roles_ = &kNoRoles;
    std::uint32_t nodes_ = 0;
    std::size_t number_ = 0;  // of the fragment
};

}  // namespace

Metadata parse_json_sequence(const std::string &text) { return Parser().run(text); }

}  // namespace opline::ctf
