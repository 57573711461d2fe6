// Looking at tokens, and the words of syntax errors.
// SPDX-License-Identifier: Apache-2.0
#include <charconv>

#include <fmt/format.h>

#include "language/parser.h"

namespace cosmati::language {
namespace {

std::string describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::end:
      return "the end of the text";
    case TokenKind::separator:
      return token.text == ";" ? "`;`" : "the end of the line";
    case TokenKind::name:
      return is_reserved(token.text) ? fmt::format("the word `{}`", token.text) : fmt::format("`{}`", token.text);
    default:
      return fmt::format("`{}`", token.text.substr(0, 40));
  }
}

}  // namespace

const Token& Tokens::take() {
  const Token& token = tokens_[at_];
  if (at_ + 1 < tokens_.size()) ++at_;
  return token;
}

bool Tokens::at_symbol(std::string_view text, std::size_t ahead) const {
  return peek(ahead).kind == TokenKind::symbol && peek(ahead).text == text;
}
bool Tokens::at_word(std::string_view text, std::size_t ahead) const {
  return peek(ahead).kind == TokenKind::name && peek(ahead).text == text;
}
bool Tokens::at_name(std::size_t ahead) const { return peek(ahead).kind == TokenKind::name && !is_reserved(peek(ahead).text); }

bool Tokens::take_symbol(std::string_view text) {
  if (!at_symbol(text)) return false;
  take();
  return true;
}
bool Tokens::take_word(std::string_view text) {
  if (!at_word(text)) return false;
  take();
  return true;
}

void Tokens::expect_symbol(std::string_view text, const std::string& context, const std::string& hint) {
  if (!take_symbol(text)) fail_expected(fmt::format("`{}` {}", text, context), hint);
}
void Tokens::expect_word(std::string_view text, const std::string& context, const std::string& hint) {
  if (!take_word(text)) fail_expected(fmt::format("`{}` {}", text, context), hint);
}

Name Tokens::expect_name(const std::string& what) {
  const Token& token = peek();
  if (token.kind == TokenKind::name && is_reserved(token.text))
    fail(ErrorCode::redefined, token.pos,
         fmt::format("`{}` is a word of the language and can not be a name (expected {})", token.text, what),
         "choose another name");
  if (token.kind != TokenKind::name) fail_expected(what);
  take();
  return {token.text, token.pos};
}

std::int64_t Tokens::expect_integer(const std::string& what) {
  const Token& token = peek();
  if (token.kind != TokenKind::integer) fail_expected(what);
  std::int64_t value = 0;
  if (std::from_chars(token.text.data(), token.text.data() + token.text.size(), value).ec != std::errc{} || value > 2147483647)
    fail(ErrorCode::syntax, token.pos, "the integer is too large for a dimension", "dimensions are at most 2147483647");
  take();
  return value;
}

void Tokens::skip_separators() {
  while (peek().kind == TokenKind::separator) take();
}

void Tokens::expect_end_of_statement(const std::string& context) {
  if (peek().kind == TokenKind::separator)
    take();
  else if (!at_symbol("}") && peek().kind != TokenKind::end)
    fail_expected(fmt::format("the end of the line after {}", context), at_word("if") ? "write where(c, x, y)"
                                                                        : at_word("else")
                                                                            ? "else stands after an index: x[row, col] else 0"
                                                                            : "");
}

void Tokens::fail(ErrorCode code, Pos pos, const std::string& message, const std::string& hint) const {
  throw Error(code, {file_, static_cast<int>(pos.line), static_cast<int>(pos.column)}, message, hint);
}

void Tokens::fail_expected(const std::string& what, const std::string& hint) const {
  fail(ErrorCode::syntax, peek().pos, fmt::format("expected {}, found {}", what, describe(peek())), hint);
}

}  // namespace cosmati::language
