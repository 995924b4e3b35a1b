// SPDX-License-Identifier: MIT
// Parser of CTF 2 metadata: a JSON text sequence (RFC 7464) of fragments, CTF2-SPEC-2.0 section 5. Whatever a fragment
// says that changes how bytes are read and is not known here is Unsupported; attributes never are.
#include <algorithm>
#include <string_view>

#include "ctf/metadata/json_fields.hpp"

namespace opline::ctf {
namespace {

using Kind = Type::Kind;

const RoleNames kHeaderRoles = {{"packet-magic-number", FieldRole::kMagic},
                                {"metadata-stream-uuid", FieldRole::kUuid},
                                {"data-stream-class-id", FieldRole::kStreamClassId},
                                {"data-stream-id", FieldRole::kStreamId}};
const RoleNames kContextRoles = {{"default-clock-timestamp", FieldRole::kBegin},
                                 {"packet-end-default-clock-timestamp", FieldRole::kEnd},
                                 {"packet-content-length", FieldRole::kContentSize},
                                 {"packet-total-length", FieldRole::kPacketSize},
                                 {"packet-sequence-number", FieldRole::kSequence},
                                 {"discarded-event-record-counter-snapshot", FieldRole::kDiscarded}};
const RoleNames kEventRoles = {{"event-record-class-id", FieldRole::kEventId},
                               {"default-clock-timestamp", FieldRole::kTimestamp}};
// lttng-tools' names of the values of lttng_ust_tracepoint_loglevel, in order.
const char *const kLogLevels[] = {"emergency",    "alert",      "critical",       "error",         "warning",
                                  "notice",       "info",       "debug:system",   "debug:program", "debug:process",
                                  "debug:module", "debug:unit", "debug:function", "debug:line",    "debug"};

class JsonParser : JsonFields {
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

    // The roots. A packet's cpu_id has no role in CTF 2: LTTng uses the same name in both versions.
    TypePtr scope(const Json &f, const char *name, const RoleNames &roles) {
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
                    cpu->roles |= bit(FieldRole::kCpu);
                    m.type = cpu;
                }
            type = out;
        }
        if ((nodes_ += type->nodes) > kMaxNodesInAll)
            unsupported("more than " + std::to_string(kMaxNodesInAll) + " fields in all");
        return type;
    }

    Metadata meta_;
    std::uint32_t nodes_ = 0;
};

}  // namespace

Metadata parse_json_sequence(const std::string &text) { return JsonParser().run(text); }

}  // namespace opline::ctf
