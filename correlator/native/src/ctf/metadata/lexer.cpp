// SPDX-License-Identifier: MIT
#include "ctf/metadata/lexer.hpp"

#include <cctype>

#include "ctf/metadata/types.hpp"

namespace opline::ctf {
namespace {

bool word_start(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool word_part(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

int digit_of(char c, int base) {
    if (!std::isxdigit(static_cast<unsigned char>(c))) return -1;
    const int digit = c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
    return digit < base ? digit : -1;
}

}  // namespace

void Lexer::skip_blank() {
    for (;;) {
        while (at_ < source_.size() && std::isspace(static_cast<unsigned char>(source_[at_])))
            line_ += source_[at_++] == '\n';
        if (source_.substr(at_, 2) == "/*") {
            auto end = source_.find("*/", at_ + 2);
            if (end == std::string_view::npos)
                throw Malformed("metadata line " + std::to_string(line_) + ": a comment does not end");
            for (; at_ < end + 2; ++at_) line_ += source_[at_] == '\n';
        } else if (source_.substr(at_, 2) == "//") {
            while (at_ < source_.size() && source_[at_] != '\n') ++at_;
        } else {
            return;
        }
    }
}

// The character at `at_`, perhaps an escape of C (octal, hexadecimal); moves `at_` behind the character.
char Lexer::character() {
    const char c = source_[at_++];
    if (c != '\\' || at_ >= source_.size()) return c;
    const int base = source_[at_] == 'x' ? 16 : 8;
    const std::size_t begin = at_ + (base == 16 ? 1 : 0), most = base == 16 ? 2 : 3;
    std::size_t end = begin;
    int value = 0;
    for (; end < begin + most && digit_of(char_at(end - at_), base) >= 0; ++end)
        value = value * base + digit_of(char_at(end - at_), base);
    if (end > begin) {
        at_ = end;
        return static_cast<char>(value);
    }
    const char d = source_[at_++];
    const auto named = std::string_view("ntrabfv").find(d);
    return named == std::string_view::npos ? d : "\n\t\r\a\b\f\v"[named];
}

void Lexer::advance() {
    skip_blank();
    token_ = Token{};
    token_.line = line_;
    if (at_ >= source_.size()) return;
    const char c = source_[at_];
    if (word_start(c)) {
        const std::size_t begin = at_;
        while (at_ < source_.size() && word_part(source_[at_])) ++at_;
        token_.kind = Token::Kind::kWord;
        token_.text = std::string(source_.substr(begin, at_ - begin));
    } else if (std::isdigit(static_cast<unsigned char>(c))) {
        int base = 10;
        if (source_.substr(at_, 2) == "0x" || source_.substr(at_, 2) == "0X") {
            base = 16;
            at_ += 2;
        } else if (c == '0') {
            base = 8;
        }
        token_.kind = Token::Kind::kInteger;
        for (int digit; (digit = digit_of(char_at(0), base)) >= 0; ++at_)
            token_.value = token_.value * static_cast<std::uint64_t>(base) + static_cast<std::uint64_t>(digit);
        while (at_ < source_.size() &&
               (source_[at_] == 'u' || source_[at_] == 'U' || source_[at_] == 'l' || source_[at_] == 'L'))
            ++at_;
    } else if (c == '"') {
        token_.kind = Token::Kind::kText;
        for (++at_; at_ < source_.size() && source_[at_] != '"';) {
            line_ += source_[at_] == '\n';
            token_.text += character();
        }
        if (at_ >= source_.size())
            throw Malformed("metadata line " + std::to_string(token_.line) + ": a text does not end");
        ++at_;
    } else if (c == '\'') {  // a character: its number
        token_.kind = Token::Kind::kInteger;
        ++at_;
        if (at_ < source_.size()) token_.value = static_cast<unsigned char>(character());
        if (char_at(0) != '\'')
            throw Malformed("metadata line " + std::to_string(token_.line) + ": a character does not end");
        ++at_;
    } else {
        token_.kind = Token::Kind::kSymbol;
        if (source_.substr(at_, 3) == "...") token_.text = "...";
        else if (source_.substr(at_, 2) == ":=") token_.text = ":=";
        else token_.text = std::string(1, c);
        at_ += token_.text.size();
    }
}

}  // namespace opline::ctf
