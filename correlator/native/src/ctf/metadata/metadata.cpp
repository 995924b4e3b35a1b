// SPDX-License-Identifier: MIT
// What the two metadata languages have in common.
#include <algorithm>
#include <cctype>
#include <cstring>

#include "ctf/metadata/types.hpp"

namespace opline::ctf {
namespace {

std::uint32_t u32_at(const std::string &s, std::size_t at, bool swap) {
    std::uint32_t v;
    std::memcpy(&v, s.data() + at, 4);
    return swap ? __builtin_bswap32(v) : v;
}

// CTF 2, or CTF 1.8's text, which should begin with a comment of its version and often does not.
bool is_text_of_metadata(const std::string &s) {
    if (s.rfind('\x1e', 0) == 0 || s.rfind("/* CTF 1.8", 0) == 0) return true;
    return s.find('\0') == std::string::npos && s.find("trace") != std::string::npos &&
           s.find('{') != std::string::npos;
}

}  // namespace

std::string Location::text() const {
    static const char *const roots[] = {"",
                                        "",
                                        "packet-header.",
                                        "packet-context.",
                                        "event-record-header.",
                                        "event-record-common-context.",
                                        "event-record-specific-context.",
                                        "event-record-payload."};
    std::string out = roots[static_cast<std::size_t>(root)];
    for (std::size_t i = 0; i < path.size(); ++i) out += (i ? "." : "") + path[i].value_or("^");
    return out;
}

void Type::grow(const Type &part) {
    nodes += part.nodes;
    depth = std::max(depth, part.depth + 1);
    if (nodes > kMaxNodes) throw Unsupported("a type of more than " + std::to_string(kMaxNodes) + " parts");
    if (depth > kMaxDepth) throw Unsupported("types nested deeper than " + std::to_string(kMaxDepth));
}

std::uint32_t alignment(const Type &t) {
    std::uint32_t a = t.align_bits;
    if (t.kind == Type::Kind::kArray || t.kind == Type::Kind::kSequence) return std::max(a, alignment(*t.element));
    if (t.kind == Type::Kind::kStruct)
        for (const auto &m : t.members) a = std::max(a, alignment(*m.type));
    return a;
}

std::vector<std::vector<Range>> selections_of(const Type &variant, const Type &tag) {
    if (!variant.selections.empty()) return variant.selections;
    if (tag.kind != Type::Kind::kEnum) throw Unsupported("a variant whose tag is no enumeration");
    std::vector<std::vector<Range>> out;
    for (const auto &option : variant.members) {
        out.emplace_back();
        for (const auto &r : tag.ranges)
            if (r.label == option.name) out.back().push_back(r.range);
    }
    return out;
}

std::optional<std::array<std::uint8_t, 16>> parse_uuid(const std::string &text) {
    std::array<std::uint8_t, 16> out{};
    std::size_t digits = 0;
    for (const char c : text) {
        if (c == '-') continue;
        if (!std::isxdigit(static_cast<unsigned char>(c)) || digits == 32) return std::nullopt;
        const int digit = c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
        out[digits / 2] = static_cast<std::uint8_t>(out[digits / 2] << 4 | digit);
        ++digits;
    }
    if (digits != 32) return std::nullopt;
    return out;
}

std::string metadata_text(const std::string &bytes) {
    constexpr std::uint32_t kMagic = 0x75d11d57;
    // magic, uuid, checksum, content and packet size, 5 bytes of schemes and version
    constexpr std::size_t kHeader = 37;
    if (bytes.empty()) throw Malformed("the metadata file is empty");
    const std::uint32_t first = bytes.size() >= 4 ? u32_at(bytes, 0, false) : 0;
    if (first != kMagic && first != __builtin_bswap32(kMagic)) {
        std::string text = bytes.rfind("\xef\xbb\xbf", 0) == 0 ? bytes.substr(3) : bytes;  // a byte order mark
        if (is_text_of_metadata(text)) return text;
        throw Malformed("the metadata file is no CTF metadata");
    }
    const bool swap = first != kMagic;
    std::string out;
    for (std::size_t at = 0; at < bytes.size();) {
        if (at + kHeader > bytes.size() || u32_at(bytes, at, swap) != kMagic)
            throw Malformed("the metadata file is cut off or damaged at byte " + std::to_string(at));
        const std::size_t content = u32_at(bytes, at + 24, swap) / 8, packet = u32_at(bytes, at + 28, swap) / 8;
        if (content < kHeader || packet < content || packet > bytes.size() - at)
            throw Malformed("the metadata file is cut off or damaged at byte " + std::to_string(at));
        out.append(bytes, at + kHeader, content - kHeader);
        at += packet;
    }
    return out;
}

Metadata parse_metadata(const std::string &text) {
    return text.rfind('\x1e', 0) == 0 ? parse_json_sequence(text) : parse_tsdl(text);
}

}  // namespace opline::ctf
