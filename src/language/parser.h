// The token stream of a parser: what is next, what must be next, and the error when it is not.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "language/ast.h"

namespace cosmati::language {

class Tokens {
 public:
  Tokens(std::vector<Token> tokens, const std::string& file) : tokens_(std::move(tokens)), file_(file) {}

  const Token& peek(std::size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
  const Token& previous() const { return tokens_[at_ == 0 ? 0 : at_ - 1]; }
  const Token& take();
  std::size_t position() const { return at_; }

  bool at_symbol(std::string_view text, std::size_t ahead = 0) const;
  bool at_word(std::string_view text, std::size_t ahead = 0) const;  // a name token of this text
  bool at_name(std::size_t ahead = 0) const;                         // a name that is not reserved
  bool take_symbol(std::string_view text);
  bool take_word(std::string_view text);

  // `hint` is shown with the error, if any.
  void expect_symbol(std::string_view text, const std::string& context, const std::string& hint = {});
  void expect_word(std::string_view text, const std::string& context, const std::string& hint = {});
  Name expect_name(const std::string& what);
  std::int64_t expect_integer(const std::string& what);
  void skip_separators();
  // A newline, `;`, or (not taken) `}`.
  void expect_end_of_statement(const std::string& context);

  [[noreturn]] void fail(ErrorCode code, Pos pos, const std::string& message, const std::string& hint = {}) const;
  [[noreturn]] void fail_expected(const std::string& what, const std::string& hint = {}) const;

 private:
  std::vector<Token> tokens_;
  const std::string& file_;
  std::size_t at_ = 0;
};

// Expressions, into the arena of a File.
class ExprParser {
 public:
  ExprParser(Tokens& tokens, File& file) : tokens_(tokens), file_(file) {}
  ExprId expression();
  ExprId expression_or_tuple();
  // The items of [ ] up to and with the closing bracket; the opening one is taken.
  std::vector<ExprId> index_list();
  std::vector<Bind> binds(const std::string& context);
  std::vector<Name> names(const std::string& what);

 private:
  ExprId binary(int level);
  ExprId unary();
  ExprId postfix();
  ExprId primary();
  ExprId number();
  ExprId call();
  void call_option(Expr& call);
  ExprId subscript(ExprId base);
  ExprId index_item();
  ExprId add(Expr expr);

  Tokens& tokens_;
  File& file_;
  int depth_ = 0;                           // of unary(), which every nesting passes through
  std::size_t tuple_at_ = ~std::size_t{0};  // the token position where a tuple may open
};

}  // namespace cosmati::language
