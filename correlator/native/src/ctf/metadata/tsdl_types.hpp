// SPDX-License-Identifier: MIT
// Types in CTF 1.8 metadata (TSDL): the tokens' grammar as far as types need it. Private to tsdl.cpp.
#pragma once
#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include "ctf/metadata/lexer.hpp"
#include "ctf/metadata/types.hpp"

namespace opline::ctf {

// Reads types, and declares their names.
class TsdlTypes {
  public:
    explicit TsdlTypes(const std::string &text) : lexer_(text) {}

  protected:
    using Attributes = std::map<std::string, Token>;
    using NamedRoles = std::map<std::string, FieldRole>;

    [[noreturn]] void unsupported(const std::string &what) const {
        throw Unsupported("metadata line " + std::to_string(lexer_.peek().line) + ": " + what);
    }
    bool at(const char *text) const {
        const auto &t = lexer_.peek();
        return (t.kind == Token::Kind::kSymbol || t.kind == Token::Kind::kWord) && t.text == text;
    }
    bool accept(const char *text) {
        if (!at(text)) return false;
        lexer_.take();
        return true;
    }
    void expect(const char *text) {
        if (!accept(text))
            throw Malformed("metadata line " + std::to_string(lexer_.peek().line) + ": \"" + text +
                            "\" is wanted, not \"" + lexer_.peek().text + "\"");
    }
    std::string word() {
        if (lexer_.peek().kind != Token::Kind::kWord)
            throw Malformed("metadata line " + std::to_string(lexer_.peek().line) + ": a name is wanted, not \"" +
                            lexer_.peek().text + "\"");
        return lexer_.take().text;
    }
    std::int64_t integer() {
        const bool negative = accept("-");
        if (lexer_.peek().kind != Token::Kind::kInteger)
            throw Malformed("metadata line " + std::to_string(lexer_.peek().line) + ": a number is wanted");
        auto v = lexer_.take().value;
        return static_cast<std::int64_t>(negative ? 0 - v : v);
    }

    // name = value; … }   with the value a word, a number, a text, or a path of words (clock.monotonic.value)
    Attributes attributes() {
        Attributes out;
        while (!accept("}")) {
            std::string name = word();
            while (accept(".")) name += "." + word();
            expect("=");
            Token value = lexer_.peek();
            if (value.kind == Token::Kind::kSymbol && value.text == "-") {
                lexer_.take();
                value = lexer_.take();
                value.value = 0 - value.value;
            } else {
                lexer_.take();
            }
            while (accept(".")) value.text += "." + word();
            if (at("[")) unsupported("an attribute with an index");
            out[name] = value;
            expect(";");
        }
        return out;
    }

    bool big_endian_of(const Attributes &a) const {
        auto it = a.find("byte_order");
        if (it == a.end() || it->second.text == "native") return meta_.big_endian;
        return it->second.text == "be" || it->second.text == "network";
    }
    static std::uint32_t number_of(const Attributes &a, const char *name, std::uint32_t otherwise) {
        auto it = a.find(name);
        return it == a.end() ? otherwise
                             : static_cast<std::uint32_t>(std::min<std::uint64_t>(it->second.value, 1u << 30));
    }
    std::uint32_t checked_alignment(std::uint64_t bits) const {
        if (bits == 0 || (bits & (bits - 1)) != 0 || bits > 4096) unsupported("an odd alignment");
        return static_cast<std::uint32_t>(bits);
    }
    TypePtr counted(const TypePtr &type) {
        if (type && (nodes_ += type->nodes) > kMaxNodesInAll)
            unsupported("more than " + std::to_string(kMaxNodesInAll) + " fields in all");
        return type;
    }

    static std::string plain(const std::string &name) {
        return !name.empty() && name[0] == '_' ? name.substr(1) : name;
    }
    // A place by its dynamic scope (CTF 1.8.3, 7.3.2), or by a name searched from the inside out.
    Location location() {
        std::vector<std::string> names;
        do names.push_back(word());
        while (accept("."));
        struct Scope {
            std::vector<std::string> prefix;
            Location::Root root;
        };
        static const std::vector<Scope> scopes = {{{"trace", "packet", "header"}, Location::Root::kPacketHeader},
                                                  {{"stream", "packet", "context"}, Location::Root::kPacketContext},
                                                  {{"stream", "event", "header"}, Location::Root::kEventHeader},
                                                  {{"stream", "event", "context"}, Location::Root::kCommonContext},
                                                  {{"event", "context"}, Location::Root::kSpecificContext},
                                                  {{"event", "fields"}, Location::Root::kPayload}};
        Location out;
        std::size_t from = 0;
        for (const Scope &scope : scopes)
            if (names.size() > scope.prefix.size() &&
                std::equal(scope.prefix.begin(), scope.prefix.end(), names.begin())) {
                out.root = scope.root;
                from = scope.prefix.size();
            }
        for (std::size_t i = from; i < names.size(); ++i) out.path.emplace_back(plain(names[i]));
        return out;
    }
    static std::uint8_t base_of(const Attributes &a) {
        auto it = a.find("base");
        if (it == a.end()) return 10;
        const auto &[text, value] = std::tie(it->second.text, it->second.value);
        if (value == 2 || text == "binary" || text == "b") return 2;
        if (value == 8 || text == "octal" || text == "oct" || text == "o") return 8;
        if (value == 16 || text == "hexadecimal" || text == "hex" || text == "x" || text == "X" || text == "p")
            return 16;
        return 10;
    }

    // The same type with roles for the fields with these names, at any depth; `timestamps`: also for integers mapped to
    // a clock.
    static TypePtr with_roles(const TypePtr &type, const NamedRoles &roles, bool timestamps,
                              const std::string &name = "") {
        if (!type) return type;
        auto out = std::make_shared<Type>(*type);
        const bool bytes = out->kind == Type::Kind::kArray && out->element->size_bits == 8;
        auto role = roles.find(name);
        if (role != roles.end() && (role->second == FieldRole::kUuid ? bytes : out->is_integer()))
            out->roles |= bit(role->second);
        if (timestamps && out->is_integer() && !out->clock.empty()) out->roles |= bit(FieldRole::kTimestamp);
        for (auto &m : out->members) m.type = with_roles(m.type, roles, timestamps, m.name);
        return out;
    }

    TypePtr integer_type() {
        expect("{");
        auto a = attributes();
        auto t = std::make_shared<Type>();
        t->kind = Type::Kind::kInteger;
        t->size_bits = number_of(a, "size", 0);
        if (t->size_bits == 0 || t->size_bits > 64)
            unsupported("an integer of " + std::to_string(t->size_bits) + " bits");
        t->align_bits = checked_alignment(number_of(a, "align", t->size_bits % 8 == 0 ? 8 : 1));
        if (auto s = a.find("signed"); s != a.end()) t->is_signed = s->second.text == "true" || s->second.value == 1;
        if (auto e = a.find("encoding"); e != a.end())
            t->text = e->second.text == "UTF8" || e->second.text == "ASCII" || e->second.text == "utf8" ||
                      e->second.text == "ascii";
        t->big_endian = big_endian_of(a);
        t->base = base_of(a);
        if (auto m = a.find("map"); m != a.end()) {
            const std::string &path = m->second.text;  // clock.NAME.value
            if (path.rfind("clock.", 0) != 0 || path.size() < 13 || path.substr(path.size() - 6) != ".value")
                unsupported("a mapping \"" + path + "\"");
            t->clock = path.substr(6, path.size() - 12);
        }
        return t;
    }

    TypePtr real_type() {
        expect("{");
        auto a = attributes();
        auto t = std::make_shared<Type>();
        t->kind = Type::Kind::kReal;
        t->size_bits = number_of(a, "exp_dig", 0) + number_of(a, "mant_dig", 0);
        if (t->size_bits != 32 && t->size_bits != 64)
            unsupported("a floating-point number of " + std::to_string(t->size_bits) + " bits");
        t->align_bits = checked_alignment(number_of(a, "align", 8));
        t->big_endian = big_endian_of(a);
        return t;
    }

    TypePtr enum_type() {
        std::string name;
        if (lexer_.peek().kind == Token::Kind::kWord) name = word();
        if (!at(":") && !at("{")) return named_type("enum " + name);
        auto t = std::make_shared<Type>();
        t->kind = Type::Kind::kEnum;
        const TypePtr container = accept(":") ? type() : named_type("int");
        if (container->kind != Type::Kind::kInteger) unsupported("an enumeration of something else than integers");
        t->size_bits = container->size_bits;
        t->align_bits = container->align_bits;
        t->is_signed = container->is_signed;
        t->big_endian = container->big_endian;
        t->base = container->base;
        expect("{");
        std::int64_t next = 0;
        while (!accept("}")) {
            EnumRange r;
            r.label = plain(lexer_.peek().kind == Token::Kind::kText ? lexer_.take().text : word());
            r.range = {next, next};
            if (accept("=")) {
                r.range.low = r.range.high = integer();
                if (accept("...")) r.range.high = integer();
            }
            next = static_cast<std::int64_t>(static_cast<std::uint64_t>(r.range.high) + 1);
            t->ranges.push_back(std::move(r));
            if (!accept(",") && !at("}")) expect(",");
        }
        if (!name.empty()) names_["enum " + name] = t;
        return t;
    }

    void members(Type &whole) {
        expect("{");
        while (!accept("}")) {
            if (at("typealias") || at("typedef")) {
                at("typealias") ? typealias() : type_definition();
                continue;
            }
            TypePtr t = type();
            Member m;
            m.name = plain(word());
            m.type = suffixes(t);
            whole.grow(*m.type);
            whole.members.push_back(std::move(m));
            expect(";");
        }
    }

    // name[3], name[__length]
    TypePtr suffixes(TypePtr element) {
        while (accept("[")) {
            auto t = std::make_shared<Type>();
            t->element = element;
            t->align_bits = 1;
            if (lexer_.peek().kind == Token::Kind::kInteger) {
                t->kind = Type::Kind::kArray;
                t->length = lexer_.take().value;
            } else {
                t->kind = Type::Kind::kSequence;
                t->location = location();
            }
            expect("]");
            t->grow(*element);
            element = t;
        }
        return element;
    }

    TypePtr struct_type() {
        std::string name;
        if (lexer_.peek().kind == Token::Kind::kWord && !at("align")) name = word();
        if (!at("{")) return named_type("struct " + name);
        auto t = std::make_shared<Type>();
        t->kind = Type::Kind::kStruct;
        members(*t);
        if (accept("align")) {
            expect("(");
            t->align_bits = checked_alignment(static_cast<std::uint64_t>(integer()));
            expect(")");
        }
        if (!name.empty()) names_["struct " + name] = t;
        return t;
    }

    TypePtr variant_type() {
        std::string name;
        if (lexer_.peek().kind == Token::Kind::kWord) name = word();
        auto t = std::make_shared<Type>();
        t->kind = Type::Kind::kVariant;
        if (!accept("<")) unsupported("a variant without a tag");
        t->location = location();
        expect(">");
        if (!at("{")) unsupported("a variant by its name");
        members(*t);
        return t;
    }

    TypePtr named_type(const std::string &name) const {
        auto it = names_.find(name);
        if (it == names_.end())
            throw Malformed("metadata line " + std::to_string(lexer_.peek().line) + ": no type is called \"" + name +
                            "\"");
        return it->second;
    }

    TypePtr type() {
        struct Level {  // leaves the level on every way out: by members, or by an alias among the members
            explicit Level(std::uint32_t &depth) : depth(depth) { ++depth; }
            ~Level() { --depth; }
            std::uint32_t &depth;
        } level(depth_);
        if (depth_ > kMaxDepth) unsupported("types nested deeper than " + std::to_string(kMaxDepth));
        std::string name = word();
        if (name == "integer") return integer_type();
        if (name == "floating_point") return real_type();
        if (name == "enum") return enum_type();
        if (name == "struct") return struct_type();
        if (name == "variant") return variant_type();
        if (name == "string") {
            auto t = std::make_shared<Type>();
            t->kind = Type::Kind::kString;
            t->align_bits = 8;
            if (accept("{")) attributes();
            return t;
        }
        // A name of several words (unsigned long): as many as make a known type.
        while (names_.find(name) == names_.end() && lexer_.peek().kind == Token::Kind::kWord) name += " " + word();
        if (at("*")) name += pointers();
        return named_type(name);
    }
    // The stars of a pointer's name: `void *`.
    std::string pointers() {
        std::string stars;
        while (accept("*")) stars += stars.empty() ? " *" : "*";
        return stars;
    }

    // typedef TYPE NAME, OTHER[3];
    void type_definition() {
        expect("typedef");
        const TypePtr t = type();
        do {
            const std::string name = word();
            names_[name] = suffixes(t);
        } while (accept(","));
        expect(";");
    }

    void typealias() {
        expect("typealias");
        TypePtr t = type();
        expect(":=");
        std::string name = word();
        while (lexer_.peek().kind == Token::Kind::kWord) name += " " + word();
        if (at("*")) name += pointers();
        expect(";");
        names_[name] = t;
    }

    Lexer lexer_;
    Metadata meta_;

  private:
    std::map<std::string, TypePtr> names_;
    std::uint32_t depth_ = 0, nodes_ = 0;
};

}  // namespace opline::ctf
