// Expressions by precedence climbing. Nesting and the height of a tree are limited, so that no text exhausts the stack here or in
// a later walk over the tree.
// SPDX-License-Identifier: Apache-2.0
#include <charconv>
#include <limits>

#include <fmt/format.h>

#include "language/elsewhere.h"
#include "language/operators.h"
#include "language/parser.h"

namespace cosmati::language {
namespace {

constexpr int max_nesting = 200;
constexpr std::uint32_t max_height = 500;

// A decimal number as double; nullopt where it is beyond the largest one.
std::optional<double> parse_real(std::string_view text) {
  double value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc{}) return value;
  long double wide = 0;  // tells an overflow from an underflow
  if (std::from_chars(text.data(), text.data() + text.size(), wide).ec == std::errc{} && wide < 1) return 0.0;
  return std::nullopt;
}

}  // namespace

ExprId ExprParser::add(Expr expr) {
  auto grow = [&](ExprId child) { expr.height = std::max(expr.height, file_.exprs[child].height + 1); };
  for (std::size_t i = 0; i < expr.args.size(); ++i) {
    const ExprId arg = expr.args[i];
    grow(arg);
    if (file_.exprs[arg].kind == ExprKind::tuple && (expr.kind != ExprKind::index || i == 0))
      tokens_.fail(ErrorCode::syntax, file_.exprs[arg].pos, "a tuple of values can not be an operand",
                   "bind it to names first: a, b = ...");
  }
  if (expr.otherwise) grow(*expr.otherwise);
  if (expr.height > max_height)
    tokens_.fail(ErrorCode::syntax, expr.pos, fmt::format("the expression is more than {} operations deep", max_height),
                 "give a part of it a name");
  file_.exprs.push_back(std::move(expr));
  return static_cast<ExprId>(file_.exprs.size() - 1);
}

ExprId ExprParser::expression() { return binary(level_or); }

ExprId ExprParser::expression_or_tuple() {
  tuple_at_ = tokens_.position();
  return expression();
}

// Operators of `level` and tighter.
ExprId ExprParser::binary(int level) {
  auto next_operator = [&] {
    const Token& token = tokens_.peek();
    return token.kind == TokenKind::symbol || token.kind == TokenKind::name ? find_binary(token.text) : nullptr;
  };
  ExprId left = unary();
  while (const Operator* op = next_operator()) {
    if (op->level < level) break;
    const Pos pos = tokens_.take().pos;
    const ExprId right = binary(op->level + 1);
    left = add({.kind = ExprKind::operation, .pos = pos, .op = op->op, .args = {left, right}});
    const Operator* next = op->level == level_compare ? next_operator() : nullptr;
    if (next && next->level == level_compare)
      tokens_.fail(ErrorCode::syntax, tokens_.peek().pos, "comparisons do not chain", "write a < b and b < c");
  }
  return left;
}

ExprId ExprParser::unary() {
  if (depth_ >= max_nesting)
    tokens_.fail(ErrorCode::syntax, tokens_.peek().pos, fmt::format("the expression is nested more than {} deep", max_nesting),
                 "give a part of it a name");
  ++depth_;
  const Token& token = tokens_.peek();
  const Operator* op = token.kind == TokenKind::symbol || token.kind == TokenKind::name ? find_unary(token.text) : nullptr;
  ExprId result;
  if (op) {
    const Pos pos = tokens_.take().pos;
    const ExprId operand = unary();
    result = add({.kind = ExprKind::operation, .pos = pos, .op = op->op, .args = {operand}});
  } else {
    result = postfix();
  }
  --depth_;
  return result;
}

ExprId ExprParser::postfix() {
  ExprId result = primary();
  while (tokens_.at_symbol("[")) result = subscript(result);
  return result;
}

ExprId ExprParser::subscript(ExprId base) {
  const Pos open = tokens_.take().pos;
  Expr expr{.kind = ExprKind::index, .pos = file_.exprs[base].pos, .args = {base}};
  if (tokens_.at_name() && tokens_.at_symbol(":=", 1)) {
    expr.kind = ExprKind::replace;
    do {
      expr.axes.push_back(tokens_.expect_name("an axis"));
      tokens_.expect_symbol(":=", "in a replacement", "v[a := e, b := f]");
      expr.args.push_back(expression());
    } while (tokens_.take_symbol(","));
    tokens_.expect_symbol("]", fmt::format("to close the [ of column {}", open.column));
  } else {
    for (ExprId item : index_list()) expr.args.push_back(item);
  }
  if (tokens_.take_word("else")) expr.otherwise = unary();
  return add(std::move(expr));
}

std::vector<ExprId> ExprParser::index_list() {
  std::vector<ExprId> items;
  if (tokens_.take_symbol("]")) return items;
  do items.push_back(index_item());
  while (tokens_.take_symbol(","));
  if (tokens_.at_symbol(":="))
    tokens_.fail_expected("`,` or `]`", "an index and a replacement do not mix: x[i, j], or v[a := e, b := f]");
  tokens_.expect_symbol("]", "after the index");
  return items;
}

ExprId ExprParser::index_item() {
  if (tokens_.at_name() && tokens_.at_symbol("...", 1)) {
    const Name name = tokens_.expect_name("an axis pack");
    tokens_.take();
    return add({.kind = ExprKind::pack, .pos = name.pos, .text = name.text});
  }
  return expression_or_tuple();
}

ExprId ExprParser::primary() {
  const Token token = tokens_.peek();
  if (token.kind == TokenKind::integer || token.kind == TokenKind::real) return number();
  if (token.kind == TokenKind::name) {
    const bool is_any = token.text == "any" && tokens_.at_symbol("(", 1);
    if (token.text == "inf" || token.text == "nan") {
      tokens_.take();
      using limits = std::numeric_limits<double>;
      return add(
          {.kind = ExprKind::real, .pos = token.pos, .real = token.text == "inf" ? limits::infinity() : limits::quiet_NaN()});
    }
    if (token.text == "true" || token.text == "false") {
      tokens_.take();
      return add({.kind = ExprKind::boolean, .pos = token.pos, .integer = token.text == "true"});
    }
    if (!is_any && is_reserved(token.text))
      tokens_.fail_expected("an expression", std::string(tokens_.at_symbol("(", 1) ? function_elsewhere(token.text) : ""));
    if (tokens_.at_symbol("(", 1)) return call();
    tokens_.take();
    if (!tokens_.take_symbol(".")) return add({.kind = ExprKind::name, .pos = token.pos, .text = token.text});
    const Name member = tokens_.expect_name("a state after the point");
    return add({.kind = ExprKind::member, .pos = token.pos, .text = token.text, .member = member.text});
  }
  if (tokens_.at_symbol("(")) {
    const bool may_be_tuple = tokens_.position() == tuple_at_;
    tokens_.take();
    ExprId first = expression();
    if (may_be_tuple && tokens_.at_symbol(",")) {
      Expr tuple{.kind = ExprKind::tuple, .pos = token.pos, .args = {first}};
      while (tokens_.take_symbol(",")) tuple.args.push_back(expression());
      tokens_.expect_symbol(")", "after the last value");
      return add(std::move(tuple));
    }
    tokens_.expect_symbol(")", fmt::format("to close the ( of line {}, column {}", token.pos.line, token.pos.column));
    return first;
  }
  std::string hint;
  const std::string_view before = tokens_.previous().text;
  if (token.text == before && token.text == "&") hint = "write x and y";
  if (token.text == before && token.text == "|") hint = "write x or y";
  if (token.text == before && token.text == "*") hint = "write pow(x, y)";
  if (token.text == ":") hint = "an index names its axes: x[row, col]";
  if (token.kind == TokenKind::separator && token.text == "\n") hint = "a line ends a statement, except inside ( ) and [ ]";
  tokens_.fail_expected("an expression", hint);
}

ExprId ExprParser::number() {
  const Token& token = tokens_.take();
  Expr expr{.kind = ExprKind::integer, .pos = token.pos};
  if (token.kind == TokenKind::real) {
    expr.kind = ExprKind::real;
    const std::optional<double> value = parse_real(token.text);
    if (!value) tokens_.fail(ErrorCode::syntax, token.pos, "the number is too large", "write inf, or a number below 1.8e308");
    expr.real = *value;
  } else if (std::from_chars(token.text.data(), token.text.data() + token.text.size(), expr.integer).ec != std::errc{}) {
    tokens_.fail(ErrorCode::syntax, token.pos, "the integer does not fit in 64 bits", "write it as a float, with a point");
  }
  return add(std::move(expr));
}

ExprId ExprParser::call() {
  const Token& name = tokens_.take();
  Expr expr{.kind = ExprKind::call, .pos = name.pos, .text = name.text};
  const Pos open = tokens_.take().pos;
  do {
    const bool is_option = (tokens_.at_word("order") || tokens_.at_word("relax")) && tokens_.at_symbol(":", 1);
    if (is_option && !expr.args.empty()) {
      call_option(expr);
    } else if (expr.order || expr.relax) {
      tokens_.fail_expected("an option", "order: and relax: come last");
    } else {
      expr.args.push_back(expression());
    }
  } while (tokens_.take_symbol(","));
  tokens_.expect_symbol(")", fmt::format("to close the ( of line {}, column {}", open.line, open.column));
  return add(std::move(expr));
}

void ExprParser::call_option(Expr& call) {
  const Token option = tokens_.take();
  tokens_.take();
  if (option.text == "order" ? call.order.has_value() : call.relax.has_value())
    tokens_.fail(ErrorCode::redefined, option.pos, fmt::format("the option {} is given twice", option.text));
  if (option.text == "relax") {
    call.relax = tokens_.expect_name("narrow, tf32, split_tf32 or approx");
  } else if (tokens_.take_word("left")) {
    call.order = ir::Order::left;
  } else if (tokens_.take_word("tree")) {
    call.order = ir::Order::tree;
  } else {
    tokens_.fail_expected("tree or left");
  }
}

std::vector<Bind> ExprParser::binds(const std::string& context) {
  std::vector<Bind> result;
  do {
    const Name name = tokens_.expect_name(fmt::format("a name after `{}`", context));
    tokens_.expect_symbol("=", fmt::format("in `{}`", context));
    result.push_back({name, expression()});
  } while (tokens_.take_symbol(","));
  return result;
}

std::vector<Name> ExprParser::names(const std::string& what) {
  std::vector<Name> result;
  do result.push_back(tokens_.expect_name(what));
  while (tokens_.take_symbol(","));
  return result;
}

}  // namespace cosmati::language
