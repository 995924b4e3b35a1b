// SPDX-License-Identifier: MIT
// Tokens of TSDL, the language of CTF 1.8 metadata.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace opline::ctf {

struct Token {
    enum class Kind : std::uint8_t { kWord, kInteger, kText, kSymbol, kEnd };
    Kind kind = Kind::kEnd;
    std::string text;         // word, decoded text, or symbol (":=" "..." are one)
    std::uint64_t value = 0;  // integer's magnitude
    int line = 0;
};

class Lexer {
  public:
    explicit Lexer(std::string_view source) : source_(source) { advance(); }
    const Token &peek() const { return token_; }
    Token take() {
        Token t = token_;
        advance();
        return t;
    }

  private:
    void advance();  // throws Malformed
    char character();
    void skip_blank();
    char char_at(std::size_t n) const { return at_ + n < source_.size() ? source_[at_ + n] : '\0'; }
    std::string_view source_;
    std::size_t at_ = 0;
    int line_ = 1;
    Token token_;
};

}  // namespace opline::ctf
