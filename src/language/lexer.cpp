// The lexical rules of the language page: longest match, digits on both sides of a point, UTF-8 in comments only.
// SPDX-License-Identifier: Apache-2.0
#include "language/lexer.h"

#include <fmt/format.h>

#include "language/elsewhere.h"

namespace cosmati::language {
namespace {

constexpr std::string_view reserved_words[] = {"program", "float", "int",    "any",   "require", "axis",     "parallel",
                                               "stream",  "carry", "next",   "merge", "reducer", "identity", "lift",
                                               "finish",  "def",   "return", "else",  "not",     "and",      "or",
                                               "inf",     "nan",   "true",   "false", "tree",    "left"};

// Longest first.
constexpr std::string_view symbols[] = {"...", "..", ":=", "==", "!=", "<=", ">=", "<<", ">>", "//", "(", ")", "[", "]", "{",
                                        "}",   ",",  ":",  "=",  "<",  ">",  "|",  "^",  "&",  "+",  "-", "*", "/", "%", "."};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_word(char c) { return is_word_start(c) || is_digit(c); }

// The length of the UTF-8 sequence at `at`, or 0 if the bytes there are not one.
std::size_t utf8_length(std::string_view text, std::size_t at) {
  auto byte = [&](std::size_t i) -> unsigned { return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0U; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  if (first == 0xe0 && byte(1) < 0xa0) return 0;                                         // overlong
  if (first == 0xed && byte(1) > 0x9f) return 0;                                         // surrogates
  if ((first == 0xf0 && byte(1) < 0x90) || (first == 0xf4 && byte(1) > 0x8f)) return 0;  // overlong, above U+10FFFF
  return length;
}

class Lexer {
 public:
  Lexer(std::string_view text, const std::string& file) : text_(text), file_(file) {
    if (text_.substr(0, 3) == "\xef\xbb\xbf") at_ = 3;
  }

  std::vector<Token> run() {
    while (at_ < text_.size()) step();
    if (depth_ == 0) push(TokenKind::separator, 0);
    push(TokenKind::end, 0);
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void fail(const std::string& message, const std::string& hint = {}) const {
    throw Error(ErrorCode::syntax, {file_, static_cast<int>(line_), static_cast<int>(column_)}, message, hint);
  }
  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  void push(TokenKind kind, std::size_t length) {
    tokens_.push_back({kind, {line_, column_}, text_.substr(at_, length)});
    at_ += length;
    column_ += static_cast<std::uint32_t>(length);
  }
  void blank() {
    ++at_;
    ++column_;
  }

  void step() {
    const char c = text_[at_];
    if (c == '\n') {
      if (depth_ == 0) {
        tokens_.push_back({TokenKind::separator, {line_, column_}, text_.substr(at_, 1)});
      }
      ++at_;
      ++line_;
      column_ = 1;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      blank();
    } else if (c == '#') {
      comment();
    } else if (c == ';') {
      push(TokenKind::separator, 1);
    } else if (is_word_start(c)) {
      std::size_t length = 1;
      while (is_word(peek(length))) ++length;
      push(TokenKind::name, length);
    } else if (is_digit(c)) {
      number();
    } else {
      symbol();
    }
  }

  void comment() {
    while (at_ < text_.size() && text_[at_] != '\n') {
      const std::size_t length = utf8_length(text_, at_);
      if (length == 0) fail("the text is not UTF-8 here");
      at_ += length;
      ++column_;
    }
  }

  void number() {
    std::size_t length = 1;
    bool real = false;
    while (is_digit(peek(length))) ++length;
    if (peek(length) == '.' && is_digit(peek(length + 1))) {
      real = true;
      ++length;
      while (is_digit(peek(length))) ++length;
    }
    if (peek(length) == 'e' || peek(length) == 'E') {
      std::size_t digits = length + 1;
      if (peek(digits) == '+' || peek(digits) == '-') ++digits;
      if (is_digit(peek(digits))) {
        real = true;
        length = digits;
        while (is_digit(peek(length))) ++length;
      }
    }
    if (peek(length) == '.' && peek(length + 1) != '.') {
      column_ += static_cast<std::uint32_t>(length);
      fail("a number needs a digit after its point", fmt::format("write {}.0", text_.substr(at_, length)));
    }
    if (is_word_start(peek(length)))
      fail(fmt::format("a number runs into a name: {}", text_.substr(at_, length + 1)),
           "numbers are decimal, like 12, 0.5 or 1e-6");
    push(real ? TokenKind::real : TokenKind::integer, length);
  }

  void symbol() {
    for (std::string_view s : symbols) {
      if (text_.substr(at_, s.size()) != s) continue;
      if (s == "." && is_digit(peek(1))) fail("a number needs a digit before its point", fmt::format("write 0.{}", peek(1)));
      if (s == "(" || s == "[") ++depth_;
      if ((s == ")" || s == "]") && depth_ > 0) --depth_;
      push(TokenKind::symbol, s.size());
      return;
    }
    const std::size_t length = utf8_length(text_, at_);
    if (length == 0) fail("the text is not UTF-8 here");
    if (length > 1)
      fail(fmt::format("`{}` can not stand here", text_.substr(at_, length)), "names are ASCII letters, digits and _");
    const char c = text_[at_];
    if (c == '!') fail("`!` is not an operator", "write not x, or x != y");
    if (c < ' ' || c == 127) fail(fmt::format("the byte 0x{:02x} can not stand here", static_cast<unsigned>(c)));
    fail(fmt::format("`{}` can not stand here", c), std::string(symbol_elsewhere(c)));
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0;
  std::uint32_t line_ = 1, column_ = 1;
  int depth_ = 0;  // open ( and [
  std::vector<Token> tokens_;
};

}  // namespace

bool is_reserved(std::string_view word) {
  for (std::string_view w : reserved_words)
    if (w == word) return true;
  return false;
}

std::vector<Token> lex(std::string_view text, const std::string& file) { return Lexer(text, file).run(); }

}  // namespace cosmati::language
