// SPDX-License-Identifier: MIT
// Parser of CTF 1.8 metadata (TSDL), as far as LTTng writes it; anything else is Unsupported.
#include <algorithm>
#include <map>
#include <string>

#include "ctf/metadata/tsdl_types.hpp"

namespace opline::ctf {
namespace {

// The trace's byte order, also for types before the trace's block. Little-endian by default.
bool is_big_endian(const std::string &text) {
    Lexer lexer(text);
    int depth = 0;
    bool in_trace = false;
    while (lexer.peek().kind != Token::Kind::kEnd) {
        const Token token = lexer.take();
        const bool symbol = token.kind == Token::Kind::kSymbol;
        if (symbol && token.text == "{") ++depth;
        else if (symbol && token.text == "}") in_trace = --depth > 0 && in_trace;
        else if (depth == 0 && token.kind == Token::Kind::kWord) in_trace = token.text == "trace";
        else if (in_trace && depth == 1 && token.text == "byte_order" && lexer.peek().text == "=") {
            lexer.take();
            return lexer.peek().text == "be" || lexer.peek().text == "network";
        }
    }
    return false;
}

class TsdlParser : TsdlTypes {
  public:
    explicit TsdlParser(const std::string &text) : TsdlTypes(text) { meta_.big_endian = is_big_endian(text); }

    Metadata run() {
        while (lexer_.peek().kind != Token::Kind::kEnd) top_level();
        return std::move(meta_);
    }

  private:
    // The blocks trace, stream, event: attributes, and types after ":=".
    void block(Attributes &attributes, std::map<std::string, TypePtr> &types) {
        expect("{");
        while (!accept("}")) {
            if (at("typealias") || at("typedef")) {
                at("typealias") ? typealias() : type_definition();
                continue;
            }
            std::string name = word();
            while (accept(".")) name += "." + word();
            if (accept(":=")) {
                types[name] = counted(type());
            } else {
                expect("=");
                attributes[name] = lexer_.take();
            }
            expect(";");
        }
        accept(";");
    }

    void environment(const Attributes &attributes) {
        for (const auto &[key, token] : attributes)
            meta_.env[key] = token.kind == Token::Kind::kText || token.kind == Token::Kind::kWord
                                 ? EnvValue{token.text, false}
                                 : EnvValue{std::to_string(static_cast<std::int64_t>(token.value)), true};
    }

    void clock(Attributes a) {
        ClockDecl c;
        c.name = a["name"].text;
        c.uuid = a["uuid"].text;
        c.description = a["description"].text;
        c.precision = a["precision"].value;
        c.unix_epoch = a["absolute"].text == "true" || a["absolute"].text == "TRUE" || a["absolute"].value == 1;
        if (a.count("freq")) c.frequency = a["freq"].value;
        if (c.frequency == 0) throw Malformed("metadata: a clock of 0 Hz");
        if (a.count("offset_s")) c.offset_s = static_cast<std::int64_t>(a["offset_s"].value);
        if (a.count("offset")) c.offset = static_cast<std::int64_t>(a["offset"].value);
        meta_.clocks[c.name] = c;
    }

    void trace() {
        Attributes a;
        std::map<std::string, TypePtr> types;
        block(a, types);
        if (a["major"].value != 1 || a["minor"].value != 8)
            unsupported("CTF " + std::to_string(a["major"].value) + "." + std::to_string(a["minor"].value));
        meta_.uuid = a["uuid"].text;
        meta_.packet_uuid = parse_uuid(meta_.uuid);
        meta_.packet_header = with_roles(types["packet.header"],
                                         {{"magic", FieldRole::kMagic},
                                          {"uuid", FieldRole::kUuid},
                                          {"stream_id", FieldRole::kStreamClassId},
                                          {"stream_instance_id", FieldRole::kStreamId}},
                                         false);
    }

    void stream() {
        Attributes a;
        std::map<std::string, TypePtr> types;
        block(a, types);
        StreamClassDecl s;
        s.id = a["id"].value;
        s.packet_context = with_roles(types["packet.context"],
                                      {{"timestamp_begin", FieldRole::kBegin},
                                       {"timestamp_end", FieldRole::kEnd},
                                       {"content_size", FieldRole::kContentSize},
                                       {"packet_size", FieldRole::kPacketSize},
                                       {"packet_seq_num", FieldRole::kSequence},
                                       {"events_discarded", FieldRole::kDiscarded},
                                       {"cpu_id", FieldRole::kCpu}},
                                      false);
        s.event_header = with_roles(types["event.header"],
                                    {{"id", FieldRole::kEventId}, {"timestamp", FieldRole::kTimestamp}}, true);
        s.event_context = types["event.context"];
        meta_.streams[s.id] = s;
    }

    void event() {
        Attributes a;
        std::map<std::string, TypePtr> types;
        block(a, types);
        EventDecl e;
        e.name = a["name"].text;
        e.id = a["id"].value;
        e.stream_id = a["stream_id"].value;
        e.emf_uri = a["model.emf.uri"].text;
        if (auto level = a.find("loglevel"); level != a.end())
            e.log_level = static_cast<int>(std::min<std::uint64_t>(level->second.value, 255));
        e.context = types["context"];
        e.payload = types["fields"];
        meta_.events.push_back(std::move(e));
    }

    void top_level() {
        if (at("typealias")) return typealias();
        if (at("typedef")) return type_definition();
        if (at("struct") || at("enum") || at("variant")) {
            type();
            expect(";");
            return;
        }
        const std::string name = word();
        if (name == "env" || name == "clock" || name == "callsite") {
            expect("{");
            const auto a = attributes();
            accept(";");
            if (name == "env") environment(a);
            if (name == "clock") clock(a);
        } else if (name == "trace") {
            trace();
        } else if (name == "stream") {
            stream();
        } else if (name == "event") {
            event();
        } else {
            unsupported("\"" + name + "\" at the top level");
        }
    }
};

}  // namespace

Metadata parse_tsdl(const std::string &text) { return TsdlParser(text).run(); }

}  // namespace opline::ctf
