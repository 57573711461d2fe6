// Reads the text form of a kernel (the grammar is in print.cpp). What it returns keeps the laws of the verifier; any other text
// is an Error{syntax} with its line. Depths are limited, so that no text exhausts the stack.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <unordered_map>

#include <cosmati/error.h>
#include <fmt/format.h>

#include "kernel/kernel.h"
#include "kernel/laws.h"
#include "kernel/text.h"

namespace cosmati::kernel {

using ops::Op;

namespace {

constexpr int max_nesting = 500;          // parentheses, calls and subscripts
constexpr int max_blocks = 200;           // blocks in blocks
constexpr std::uint32_t max_tree = 1000;  // depth of one expression

struct Token {
  enum class Kind { word, number, sign, end } kind = Kind::end;
  std::string_view text;
};

struct Line {
  int number = 0, depth = 0;
  std::vector<Token> tokens;
};

[[noreturn]] void fail(int line, std::string what) {
  throw Error(ErrorCode::syntax, Where{"<kernel>", line, 0}, std::move(what));
}

bool is_word_char(char c) {
  return (static_cast<unsigned char>(c) < 128 && std::isalnum(static_cast<unsigned char>(c))) || c == '_';
}
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The end of a number: digits, a fraction, an exponent, and the suffix that names its type.
std::size_t number_end(std::string_view s, std::size_t i) {
  const auto digits = [&] {
    while (i < s.size() && is_digit(s[i])) ++i;
  };
  digits();
  if (i + 1 < s.size() && s[i] == '.' && is_digit(s[i + 1])) {
    ++i;
    digits();
  }
  if (i < s.size() && s[i] == 'e') {
    const std::size_t sign = i + 1 < s.size() && (s[i + 1] == '-' || s[i + 1] == '+');
    if (i + 1 + sign < s.size() && is_digit(s[i + 1 + sign])) {
      i += 1 + sign;
      digits();
    }
  }
  while (i < s.size() && is_word_char(s[i])) ++i;
  return i;
}

std::vector<Token> tokens_of(std::string_view s, int line) {
  static constexpr std::string_view signs[] = {"..", "==", "!=", "<=", ">=", "<<", ">>", "//", "(", ")", "[", "]", ",",
                                               ":",  "=",  "<",  ">",  "|",  "^",  "&",  "+",  "-", "*", "/", "%"};
  std::vector<Token> tokens;
  for (std::size_t i = 0; i < s.size() && s[i] != '#';) {
    if (s[i] == ' ' || s[i] == '\r') {
      ++i;
      continue;
    }
    std::size_t end = i;
    Token::Kind kind = Token::Kind::word;
    if (is_digit(s[i])) {
      kind = Token::Kind::number;
      end = number_end(s, i);
    } else if (is_word_char(s[i])) {
      while (end < s.size() && is_word_char(s[end])) ++end;
    } else {
      kind = Token::Kind::sign;
      const auto sign = std::find_if(std::begin(signs), std::end(signs), [&](auto t) { return s.substr(i).starts_with(t); });
      if (sign == std::end(signs))
        fail(line, fmt::format("character {:#04x} belongs to no token", static_cast<unsigned char>(s[i])));
      end = i + sign->size();
    }
    tokens.push_back({kind, s.substr(i, end - i)});
    i = end;
  }
  return tokens;
}

std::vector<Line> lines_of(std::string_view text) {
  std::vector<Line> lines;
  int number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    std::vector<Token> tokens = tokens_of(line, ++number);
    if (tokens.empty()) continue;
    const std::size_t indent = line.find_first_not_of(' ');
    if (indent % 2) fail(number, "blocks are indented by two spaces");
    if (indent / 2 > max_blocks) fail(number, fmt::format("blocks are nested more than {} deep", max_blocks));
    tokens.push_back({Token::Kind::end, "end of line"});
    lines.push_back({number, static_cast<int>(indent / 2), std::move(tokens)});
  }
  return lines;
}

class Parser {
 public:
  explicit Parser(const std::string& text) : lines_(lines_of(text)) {}

  Kernel run() {
    if (lines_.empty()) fail(1, "there is no kernel");
    open(0);
    word("kernel");
    k_.name = any_word();
    close();
    while (more(1) && peek_word("param")) param();
    while (more(1) && peek_word("buffer")) buffer();
    while (more(1) && peek_word("requires")) {
      open(1);
      word("requires");
      k_.conditions.push_back(expression(precedence_loosest));
      close();
    }
    while (more(1)) {
      open(1);
      word("phase");
      Phase p;
      p.name = any_word();
      word("groups");
      p.groups = expression(precedence_loosest);
      if (accept("lanes")) {
        p.lanes = static_cast<int>(index());
        p.apart = accept("apart");
      }
      if (accept("packed")) p.packed = static_cast<int>(index());
      close();
      p.body = block(2);
      k_.phases.push_back(std::move(p));
    }
    if (at_ < lines_.size()) fail(lines_[at_].number, "this line belongs to no block");
    if (const auto broken = broken_law(k_)) fail(broken->at ? stmt_lines_[broken->at.index] : 1, broken->what);
    return std::move(k_);
  }

 private:
  // ---- lines ----
  bool more(int depth) const { return at_ < lines_.size() && lines_[at_].depth == depth; }
  bool peek_word(std::string_view w) const { return lines_[at_].tokens[0].text == w; }
  void open(int depth) {
    line_ = &lines_[at_];
    token_ = 0;
    if (line_->depth != depth)
      fail(line_->number, fmt::format("this line is indented by {} instead of {}", 2 * line_->depth, 2 * depth));
  }
  void close() {
    if (peek().kind != Token::Kind::end) error(fmt::format("{} is left over", peek().text));
    ++at_;
  }
  [[noreturn]] void error(const std::string& what) const { fail(line_->number, what); }

  // ---- tokens ----
  const Token& peek() const { return line_->tokens[token_]; }
  const Token& next() { return peek().kind == Token::Kind::end ? peek() : line_->tokens[token_++]; }
  bool accept(std::string_view text) {
    if (peek().kind == Token::Kind::end || peek().text != text) return false;
    ++token_;
    return true;
  }
  void word(std::string_view text) {
    if (!accept(text)) error(fmt::format("{} is expected before {}", text, peek().text));
  }
  std::string any_word() {
    const Token t = next();
    if (t.kind != Token::Kind::word) error(fmt::format("a name is expected, not {}", t.text));
    return std::string(t.text);
  }
  std::string name() {
    const Token t = next();
    if (t.kind != Token::Kind::word || is_reserved(t.text)) error(fmt::format("a name is expected, not {}", t.text));
    return std::string(t.text);
  }
  DType dtype() {
    const std::string_view t = next().text;
    if (const auto d = dtype_from_name(t)) return *d;
    error(fmt::format("a type is expected, not {}", t));
  }
  std::uint32_t index() {
    const std::string_view t = next().text;
    std::uint32_t value = 0;
    const auto [end, code] = std::from_chars(t.data(), t.data() + t.size(), value);
    if (code != std::errc() || end != t.data() + t.size()) error(fmt::format("an index is expected, not {}", t));
    return value;
  }

  // ---- declarations ----
  void declare(const std::string& name, std::unordered_map<std::string, std::uint32_t>& table, std::size_t index) {
    if (params_.contains(name) || buffers_.contains(name) || vars_.contains(name)) error(fmt::format("{} is named twice", name));
    table.emplace(name, static_cast<std::uint32_t>(index));
  }

  void param() {
    open(1);
    word("param");
    Param p{};
    p.name = name();
    word(":");
    p.dtype = dtype();
    word("=");
    p.source = accept("extent")      ? Param::Source::extent
               : accept("stride")    ? Param::Source::stride
               : accept("unaligned") ? Param::Source::unaligned
                                     : Param::Source::scalar;
    if (p.source == Param::Source::scalar) word("scalar");
    word("(");
    p.a = index();
    if (p.source == Param::Source::stride) {
      word(",");
      p.b = index();
    }
    word(")");
    close();
    declare(p.name, params_, k_.params.size());
    k_.params.push_back(std::move(p));
  }

  void buffer() {
    open(1);
    word("buffer");
    Buffer b{};
    b.name = name();
    word(":");
    b.dtype = dtype();
    b.access = accept("read") ? Buffer::Access::read : accept("write") ? Buffer::Access::write : Buffer::Access::read_write;
    if (b.access == Buffer::Access::read_write) word("read_write");
    word("=");
    if (accept("argument")) {
      b.kind = Buffer::Kind::argument;
      word("(");
      b.tensor = index();
      word(")");
      b.aliased = accept("aliased");
    } else {
      b.kind = accept("launch_scratch") ? Buffer::Kind::launch_scratch : Buffer::Kind::worker_scratch;
      if (b.kind == Buffer::Kind::worker_scratch) word("worker_scratch");
      word("[");
      b.elements = expression(precedence_guarded);
      word("]");
    }
    close();
    declare(b.name, buffers_, k_.buffers.size());
    k_.buffers.push_back(std::move(b));
  }

  VarId define(const std::string& name, DType dtype) {
    declare(name, vars_, k_.vars.size());
    k_.vars.push_back({name, dtype});
    return VarId{static_cast<std::uint32_t>(k_.vars.size() - 1)};
  }

  // ---- statements ----
  Block block(int depth) {
    Block b;
    while (more(depth) && !peek_word("next") && !peek_word("else")) b.push_back(statement(depth));
    return b;
  }

  StmtId statement(int depth) {
    open(depth);
    const int number = line_->number;
    StmtNode node = accept("let")              ? let()
                    : accept("for")            ? loop(depth)
                    : accept("if")             ? condition(depth)
                    : accept("prefetch")       ? prefetch(false)
                    : accept("prefetch_write") ? prefetch(true)
                    : accept("past_caches")    ? store(true)
                    : accept("fence")          ? fence()
                                               : store(false);
    k_.stmts.push_back({std::move(node)});
    stmt_lines_.push_back(number);
    return StmtId{static_cast<std::uint32_t>(k_.stmts.size() - 1)};
  }

  StmtNode let() {
    const std::string n = name();
    word("=");
    const ExprId value = expression(precedence_guarded);
    close();
    return Let{define(n, k_[value].dtype), value};
  }

  StmtNode loop(int depth) {
    const int first_line = line_->number;
    For f;
    const std::string var = name();
    word("in");
    f.lo = expression(precedence_loosest);
    word("..");
    f.hi = expression(precedence_loosest);
    f.var = define(var, DType::i64_);
    if (accept("carry")) {
      std::vector<std::string> inner;
      do {
        inner.push_back(name());
        word("=");
        f.carries.emplace_back().init = expression(precedence_loosest);
      } while (accept(","));
      word("gives");
      for (std::size_t i = 0; i < inner.size(); ++i) {
        if (i) word(",");
        const DType t = k_[f.carries[i].init].dtype;
        f.carries[i].inner = define(inner[i], t);
        f.carries[i].result = define(name(), t);
      }
    }
    close();
    f.body = block(depth + 1);
    if (f.carries.empty()) return f;
    if (!more(depth + 1)) fail(first_line, "a loop with carried values ends with next");
    open(depth + 1);
    word("next");
    for (std::size_t i = 0; i < f.carries.size(); ++i) {
      if (i) word(",");
      f.carries[i].next = expression(precedence_loosest);
    }
    close();
    return f;
  }

  StmtNode condition(int depth) {
    If f;
    f.condition = expression(precedence_loosest);
    close();
    f.then = block(depth + 1);
    if (more(depth) && peek_word("else")) {
      open(depth);
      word("else");
      close();
      f.otherwise = block(depth + 1);
    }
    return f;
  }

  StmtNode fence() {
    close();
    return Fence{};
  }

  StmtNode prefetch(bool write) {
    const std::string n = name();
    word("[");
    const Ref ref = subscript(n);
    close();
    return Prefetch{ref, write};
  }

  StmtNode store(bool past_caches) {
    Store s;
    s.past_caches = past_caches;
    const std::string n = name();
    word("[");
    s.ref = subscript(n);
    word("=");
    s.value = expression(precedence_loosest);
    if (accept("if")) s.guard = expression(precedence_loosest);
    close();
    return s;
  }

  // ---- expressions ----
  ExprId append(ExprNode node, DType dtype, std::initializer_list<ExprId> below = {}) {
    return append(std::move(node), dtype, std::vector<ExprId>(below));
  }
  ExprId append(ExprNode node, DType dtype, const std::vector<ExprId>& below) {
    std::uint32_t depth = 0;
    for (ExprId e : below) depth = std::max(depth, depths_[e.index] + 1);
    if (depth > max_tree) error(fmt::format("this expression is more than {} deep", max_tree));
    depths_.push_back(depth);
    k_.exprs.push_back({std::move(node), dtype});
    return ExprId{static_cast<std::uint32_t>(k_.exprs.size() - 1)};
  }

  ExprId apply(Op op, std::vector<ExprId> args) {
    const int arity = ops::info(op).arity;
    if (static_cast<int>(args.size()) != arity)
      error(fmt::format("{} takes {} arguments, not {}", ops::name(op), arity, args.size()));
    const DType result = result_type(k_, op, args);
    return append(Apply{op, args}, result, args);
  }

  // The rest of NAME[ : the offset and the bracket.
  Ref subscript(const std::string& name) {
    const auto b = buffers_.find(name);
    if (b == buffers_.end()) error(fmt::format("{} is not a buffer", name));
    const ExprId offset = expression(precedence_guarded);
    word("]");
    return {BufferId{b->second}, offset};
  }

  ExprId expression(int precedence) {
    if (++nesting_ > max_nesting) error(fmt::format("expressions are nested more than {} deep", max_nesting));
    ExprId e = primary();
    e = operators(e, std::max(precedence, precedence_loosest));
    if (precedence == precedence_guarded && accept("if")) {
      Load* plain = std::get_if<Load>(&k_.exprs[e.index].node);
      if (!plain || plain->guard) error("only a load takes a guard");
      const Ref ref = plain->ref;
      const ExprId guard = expression(precedence_loosest);
      word("else");
      const ExprId otherwise = expression(precedence_loosest);
      const DType t = k_[ref.buffer].dtype;
      e = append(Load{ref, guard, otherwise}, t, {ref.offset, guard, otherwise});
    }
    --nesting_;
    return e;
  }

  ExprId operators(ExprId left, int precedence) {
    for (;;) {
      const auto infix =
          std::find_if(std::begin(infix_table), std::end(infix_table), [&](const Infix& i) { return i.spelling == peek().text; });
      if (infix == std::end(infix_table) || infix->precedence < precedence) return left;
      ++token_;
      const ExprId right = expression(infix->precedence + 1);
      left = apply(infix->op, {left, right});
    }
  }

  ExprId primary() {
    const bool negative = accept("-");
    const Token t = next();
    if (t.kind == Token::Kind::number) return number(t.text, negative);
    if (t.kind == Token::Kind::word && is_reserved(t.text) && t.text.size() > 4 && t.text[3] == '_') {
      const double magnitude =
          t.text.starts_with("inf") ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
      return append(Const{.f = negative ? -magnitude : magnitude}, *dtype_from_name(t.text.substr(4)));
    }
    if (negative) error("a minus sign stands before a constant or between two values; the operation is neg(x)");
    if (t.text == "(") {
      const ExprId e = expression(precedence_guarded);
      word(")");
      return e;
    }
    if (t.kind != Token::Kind::word) error(fmt::format("a value is expected, not {}", t.text));
    if (t.text == "true" || t.text == "false") return append(Const{.i = t.text == "true"}, DType::bool_);
    if (t.text == "group") return append(Id{Id::What::group}, DType::i64_);
    if (t.text == "worker") return append(Id{Id::What::worker}, DType::i64_);
    if (t.text == "lane") return append(Id{Id::What::lane}, DType::i64_);
    const std::string n(t.text);
    if (accept("(")) return call(n);
    if (accept("[")) {
      const Ref r = subscript(n);
      const DType element = k_[r.buffer].dtype;
      return append(Load{r, {}, {}}, element, {r.offset});
    }
    if (const auto v = vars_.find(n); v != vars_.end()) return append(VarRef{VarId{v->second}}, k_.vars[v->second].dtype);
    if (const auto p = params_.find(n); p != params_.end())
      return append(ParamRef{ParamId{p->second}}, k_.params[p->second].dtype);
    error(fmt::format("{} is not a name of this kernel", n));
  }

  ExprId call(const std::string& n) {
    if (n == "swap" || n == "first") return shuffle(n == "swap");
    std::vector<ExprId> args;
    do args.push_back(expression(precedence_guarded));
    while (accept(","));
    word(")");
    const bool is_bits = n.starts_with("bits_");
    if (const auto to = dtype_from_name(is_bits ? std::string_view(n).substr(5) : std::string_view(n))) {
      if (args.size() != 1) error(fmt::format("{} takes 1 argument, not {}", n, args.size()));
      return append(Apply{is_bits ? Op::bits : Op::cast, args}, *to, args);
    }
    const auto op = ops::op_from_name(n);
    if (!op || *op == Op::cast || *op == Op::bits) error(fmt::format("{} is not an operation", n));
    return apply(*op, std::move(args));
  }

  ExprId shuffle(bool swap) {
    Shuffle s{expression(precedence_guarded), {}};
    if (swap) {
      word(",");
      s.mask = index();
    }
    word(")");
    return append(s, k_[s.value].dtype, {s.value});
  }

  ExprId number(std::string_view t, bool negative) {
    std::size_t digits = t.size();
    DType type = DType::i64_;
    for (int i = 0; i < dtype_count; ++i)
      if (const DType candidate = static_cast<DType>(i);
          t.ends_with(name_of(candidate)) && t.size() - name_of(candidate).size() < digits) {
        type = candidate;
        digits = t.size() - name_of(candidate).size();
      }
    const std::string body = (negative ? "-" : "") + std::string(t.substr(0, digits));
    const char *begin = body.data(), *end = begin + body.size();
    Const c;
    std::from_chars_result read{};
    if (type == DType::f64_) {
      read = std::from_chars(begin, end, c.f);
    } else if (is_float(type)) {
      float f = 0;
      read = std::from_chars(begin, end, f);
      c.f = f;
    } else {
      read = std::from_chars(begin, end, c.i);
    }
    if (read.ec != std::errc() || read.ptr != end || is_bool(type)) error(fmt::format("{} is not a constant", t));
    return append(c, type);
  }
  static std::string_view name_of(DType t) { return cosmati::name(t); }

  std::vector<Line> lines_;
  std::size_t at_ = 0, token_ = 0;
  const Line* line_ = nullptr;
  int nesting_ = 0;
  Kernel k_;
  std::vector<std::uint32_t> depths_;  // of each expression
  std::vector<int> stmt_lines_;
  std::unordered_map<std::string, std::uint32_t> params_, buffers_, vars_;
};

}  // namespace

Kernel parse(const std::string& text) { return Parser(text).run(); }

}  // namespace cosmati::kernel
