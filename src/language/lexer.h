// Text to tokens. Newlines inside ( ) and [ ] are blanks; elsewhere a newline and `;` are separator tokens.
// Any bytes give tokens or an Error{syntax}; the time is linear in the text.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <cosmati/error.h>

namespace cosmati::language {

struct Pos {
  std::uint32_t line = 0, column = 0;  // from 1; columns count code points
};

enum class TokenKind : std::uint8_t { name, integer, real, symbol, separator, end };

struct Token {
  TokenKind kind;
  Pos pos;
  std::string_view text;  // into the source
};

// Words that can not be names. Words that matter only in their place (in, out, tile, ...) are not here.
bool is_reserved(std::string_view word);

std::vector<Token> lex(std::string_view text, const std::string& file);

}  // namespace cosmati::language
