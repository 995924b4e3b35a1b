// SPDX-License-Identifier: MIT
#include "ctf/metadata/lexer.hpp"

#include <cctype>

#include "ctf/metadata/types.hpp"

namespace opline::ctf {
namespace {

bool word_start(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool word_part(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

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
        while (at_ < source_.size() && std::isxdigit(static_cast<unsigned char>(source_[at_]))) {
            const char d = source_[at_];
            const int digit = d <= '9' ? d - '0' : (d | 0x20) - 'a' + 10;
            if (digit >= base) break;
            token_.value = token_.value * static_cast<std::uint64_t>(base) + static_cast<std::uint64_t>(digit);
            ++at_;
        }
        while (at_ < source_.size() &&
               (source_[at_] == 'u' || source_[at_] == 'U' || source_[at_] == 'l' || source_[at_] == 'L'))
            ++at_;
    } else if (c == '"') {
        token_.kind = Token::Kind::kText;
        for (++at_; at_ < source_.size() && source_[at_] != '"'; ++at_) {
            char d = source_[at_];
            if (d == '\\' && at_ + 1 < source_.size()) {
                d = source_[++at_];
                if (d == 'n') d = '\n';
                else if (d == 't') d = '\t';
            }
            line_ += d == '\n';
            token_.text += d;
        }
        if (at_ >= source_.size())
            throw Malformed("metadata line " + std::to_string(token_.line) + ": a text does not end");
        ++at_;
    } else if (const std::size_t escape = char_at(1) == '\\' ? 1 : 0;
               c == '\'' && char_at(2 + escape) == '\'') {  // a character: its number
        token_.kind = Token::Kind::kInteger;
        const char d = char_at(1 + escape);
        const auto named = std::string_view("ntr0abfv").find(d);
        const char value = escape && named != std::string_view::npos ? "\n\t\r\0\a\b\f\v"[named] : d;
        token_.value = static_cast<unsigned char>(value);
        at_ += 3 + escape;
    } else {
        token_.kind = Token::Kind::kSymbol;
        if (source_.substr(at_, 3) == "...") token_.text = "...";
        else if (source_.substr(at_, 2) == ":=") token_.text = ":=";
        else token_.text = std::string(1, c);
        at_ += token_.text.size();
    }
}

}  // namespace opline::ctf
