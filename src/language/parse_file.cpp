// Declarations and statements: everything of the grammar above expressions.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "language/names.h"
#include "language/parser.h"
#include "support/suggest.h"

namespace cosmati::language {
namespace {

class FileParser {
 public:
  FileParser(File& file, Tokens& tokens) : file_(file), tokens_(tokens), exprs_(tokens, file) {}

  void run() {
    for (tokens_.skip_separators(); tokens_.peek().kind != TokenKind::end; tokens_.skip_separators()) {
      if (tokens_.take_word("program"))
        file_.programs.push_back(program());
      else if (tokens_.take_word("def"))
        file_.defs.push_back(def());
      else if (tokens_.take_word("reducer"))
        file_.reducers.push_back(reducer());
      else
        tokens_.fail_expected("`program`, `def` or `reducer`", tokens_.at_symbol("//") ? "a comment begins with #" : "");
      tokens_.expect_end_of_statement("the declaration");
    }
  }

 private:
  void open_brace(const std::string& context) {
    tokens_.expect_symbol("{", context, tokens_.peek().kind == TokenKind::separator ? "{ stands on the line of its keyword" : "");
    tokens_.skip_separators();
  }
  void close_brace(const std::string& context) {
    tokens_.skip_separators();
    tokens_.expect_symbol("}", context);
  }

  // ---- programs ----
  ProgramDecl program() {
    ProgramDecl result;
    result.name = tokens_.expect_name("the program's name");
    if (tokens_.take_symbol("<")) {
      do result.types.push_back(type_variable());
      while (tokens_.take_symbol(","));
      tokens_.expect_symbol(">", "after the type variables");
    }
    tokens_.expect_symbol("(", "before the parameters");
    do result.params.push_back(param());
    while (tokens_.take_symbol(","));
    tokens_.expect_symbol(")", "after the parameters");
    open_brace("before the program's body");
    while (!tokens_.at_word("parallel")) {
      result.head.push_back(head_statement());
      tokens_.expect_end_of_statement("the statement");
      tokens_.skip_separators();
    }
    region(result);
    tokens_.skip_separators();
    if (tokens_.at_word("parallel"))
      tokens_.fail(ErrorCode::not_supported, tokens_.peek().pos, "a program has one parallel region", "write a second program");
    close_brace("after the region, which ends the program");
    return result;
  }

  TypeVariable type_variable() {
    const Name name = tokens_.expect_name("a type variable");
    tokens_.expect_symbol(":", "after the type variable", "write T: float");
    if (tokens_.take_word("float")) return {name, TypeClass::any_float};
    if (tokens_.take_word("int")) return {name, TypeClass::any_int};
    if (tokens_.take_word("any")) return {name, TypeClass::any};
    tokens_.fail_expected("float, int or any");
  }

  ParamDecl param() {
    ParamDecl result;
    bool access = false;
    for (auto [word, value] : {std::pair{"in", ir::Access::in}, {"out", ir::Access::out}, {"inout", ir::Access::inout}}) {
      if (access || !tokens_.at_word(word) || tokens_.peek(1).kind != TokenKind::name) continue;
      tokens_.take();
      access = true;
      result.access = value;
    }
    result.name = tokens_.expect_name("a parameter");
    tokens_.expect_symbol(":", "and a type after the parameter");
    if (const std::string near = support::suggest_dtype(tokens_.peek().text); is_reserved(tokens_.peek().text) && !near.empty())
      tokens_.fail(ErrorCode::unknown_name, tokens_.peek().pos, fmt::format("there is no type `{}`", tokens_.peek().text), near);
    result.type = tokens_.expect_name("a type");
    result.is_tensor = access;
    if (!access) {
      if (tokens_.at_symbol("["))
        tokens_.fail_expected("`,` or `)` after a scalar parameter",
                              fmt::format("a tensor is declared with in, out or inout: in {}: ...", result.name.text));
      if (tokens_.take_symbol("=")) result.fallback = exprs_.expression();
      return result;
    }
    tokens_.expect_symbol("[", "and the dimensions of a tensor", "a scalar is declared without in or out");
    if (!tokens_.at_symbol("]")) {
      do result.dims.push_back(dim());
      while (tokens_.take_symbol(","));
    }
    tokens_.expect_symbol("]", "after the dimensions");
    contracts(result);
    return result;
  }

  DimDecl dim() {
    DimDecl result;
    if (tokens_.take_symbol("(")) {
      do result.factors.push_back({tokens_.expect_name("an axis"), 0});
      while (tokens_.take_symbol(","));
      tokens_.expect_symbol(")", "after the axes of the dimension");
      return result;
    }
    if (tokens_.peek().kind == TokenKind::integer) {
      result.factors.push_back({std::nullopt, tokens_.expect_integer("an extent")});
      return result;
    }
    FactorDecl factor{tokens_.expect_name("a dimension"), 0};
    if (tokens_.take_symbol("..."))
      result.pack = true;
    else if (tokens_.take_symbol("+"))
      factor.offset = tokens_.expect_integer("an integer");
    else if (tokens_.take_symbol("-"))
      factor.offset = -tokens_.expect_integer("an integer");
    result.factors.push_back(factor);
    return result;
  }

  void contracts(ParamDecl& param) {
    for (;;) {
      const Token token = tokens_.peek();
      if (tokens_.take_word("sorted")) {
        param.sorted = true;
      } else if (tokens_.take_word("distinct")) {
        param.distinct = true;
      } else if (tokens_.take_word("in")) {
        if (param.range) tokens_.fail(ErrorCode::redefined, token.pos, fmt::format("{} has two ranges", param.name.text));
        const ExprId lo = exprs_.expression();
        tokens_.expect_symbol("..", "and the upper end of the range");
        param.range = {lo, exprs_.expression()};
      } else {
        return;
      }
    }
  }

  HeadStmt head_statement() {
    if (tokens_.take_word("axis")) return axis();
    if (tokens_.take_word("require")) return Require{exprs_.expression()};
    if (tokens_.at_word("stream")) tokens_.fail_expected("`parallel`", "a stream stands inside the parallel region");
    if (tokens_.at_symbol("}")) tokens_.fail_expected("`parallel` and the region of the program", "write parallel { ... }");
    if (tokens_.at_name() && tokens_.at_symbol("[", 1))
      tokens_.fail_expected("`parallel`", "a store stands inside the parallel region");
    return let();
  }

  void region(ProgramDecl& program) {
    program.region_pos = tokens_.take().pos;
    if (!tokens_.at_symbol("{")) {
      do {
        AxisRef axis{tokens_.expect_name("an axis"), false};
        axis.pack = tokens_.take_symbol("...");
        program.parallel.push_back(axis);
      } while (tokens_.take_symbol(","));
    }
    open_brace("before the region");
    while (!tokens_.at_symbol("}")) {
      if (tokens_.at_word("stream")) {
        program.region.push_back(stream());
      } else {
        if (tokens_.at_word("parallel"))
          tokens_.fail(ErrorCode::not_supported, tokens_.peek().pos, "a program has one parallel region",
                       "name all its axes: parallel a, b");
        BodyStmt statement = body_statement();
        std::visit([&](auto& s) { program.region.push_back(std::move(s)); }, statement);
      }
      end_statement_in_block();
    }
    tokens_.take();
  }

  void end_statement_in_block() {
    if (tokens_.previous().text != "}") tokens_.expect_end_of_statement("the statement");
    tokens_.skip_separators();
  }

  BodyStmt body_statement() {
    if (tokens_.take_word("axis")) return axis();
    if (tokens_.at_word("require")) tokens_.fail_expected("a statement of the region", "a require stands before parallel");
    if (tokens_.at_name() && tokens_.at_symbol("[", 1)) {
      StoreStmt store;
      store.tensor = tokens_.expect_name("a tensor");
      tokens_.take();
      store.index = exprs_.index_list();
      tokens_.expect_symbol("=", "and the value to store", "an inout is read and stored: y[row] = y[row] + x");
      store.value = exprs_.expression();
      return store;
    }
    return let();
  }

  AxisDecl axis() {
    AxisDecl result;
    result.name = tokens_.expect_name("an axis");
    if (tokens_.take_symbol("=")) {
      result.hi = exprs_.expression();
      return result;
    }
    tokens_.expect_word("in", "or `=` after the axis", "write axis n = 8, or axis n in lo .. hi");
    result.lo = exprs_.expression();
    tokens_.expect_symbol("..", "and the upper end of the range", "write axis n in lo .. hi, or axis n = hi");
    result.hi = exprs_.expression();
    return result;
  }

  Let let() {
    for (std::string_view word : {"while", "for", "if", "loop", "do"})
      if (tokens_.at_word(word) && !tokens_.at_symbol("=", 1) && !tokens_.at_symbol(",", 1))
        tokens_.fail(ErrorCode::not_supported, tokens_.peek().pos, fmt::format("there is no `{}` statement", word),
                     word == "if" ? "write where(c, x, y)" : "a reduction or a stream runs over an axis");
    const bool looks_like_let =
        tokens_.peek().kind == TokenKind::name && (tokens_.at_symbol("=", 1) || tokens_.at_symbol(",", 1));
    if (!tokens_.at_name() && !looks_like_let)
      tokens_.fail_expected("a statement", tokens_.peek().kind == TokenKind::symbol && !tokens_.at_symbol("}")
                                               ? "a line ends a statement; put an expression of several lines in ( )"
                                               : "");
    Let result;
    result.names = exprs_.names("a name");
    tokens_.expect_symbol("=", fmt::format("after `{}`", result.names.back().text), "write name = expression");
    result.value = exprs_.expression_or_tuple();
    return result;
  }

  StreamStmt stream() {
    StreamStmt result;
    result.pos = tokens_.take().pos;
    if (tokens_.at_word("tile") && !tokens_.at_word("carry", 1)) {
      tokens_.take();
      result.tile = true;
    }
    result.axis = tokens_.expect_name("the axis of the stream");
    tokens_.expect_word("carry", "and the carried values");
    result.carry = exprs_.binds("carry");
    open_brace("before the stream's body");
    while (!tokens_.at_word("next")) {
      if (tokens_.at_symbol("}")) tokens_.fail_expected("`next` and the next value of each carried one");
      if (tokens_.at_word("stream"))
        tokens_.fail(ErrorCode::not_supported, tokens_.peek().pos, "a stream can not stand inside a stream");
      result.body.push_back(body_statement());
      end_statement_in_block();
    }
    result.next_pos = tokens_.take().pos;
    result.next = exprs_.binds("next");
    tokens_.skip_separators();
    result.merge_pos = tokens_.peek().pos;
    if (tokens_.take_word("merge")) result.merge = exprs_.binds("merge");
    close_brace("after `next` and `merge`, which end a stream");
    return result;
  }

  // ---- defs and reducers ----
  std::vector<Name> parameter_names() {
    tokens_.expect_symbol("(", "before the parameters");
    std::vector<Name> result = exprs_.names("a parameter");
    tokens_.expect_symbol(")", "after the parameters");
    return result;
  }

  DefDecl def() {
    DefDecl result;
    result.name = tokens_.expect_name("the def's name");
    result.params = parameter_names();
    if (tokens_.take_symbol("=")) {
      result.result = exprs_.expression();
      return result;
    }
    open_brace("or `=` after the parameters");
    while (!tokens_.take_word("return")) {
      if (tokens_.at_symbol("}")) tokens_.fail_expected("`return` and the value of the def");
      result.lets.push_back(let());
      tokens_.expect_end_of_statement("the statement");
      tokens_.skip_separators();
    }
    result.result = exprs_.expression_or_tuple();
    close_brace("after `return`, which ends a def");
    return result;
  }

  ReducerDecl reducer() {
    ReducerDecl result;
    result.name = tokens_.expect_name("the reducer's name");
    result.params = parameter_names();
    open_brace("before the reducer's body");
    auto section = [&](const char* word) {
      tokens_.skip_separators();
      tokens_.expect_word(word, "in a reducer", "a reducer is identity, lift, merge, finish, in this order");
    };
    section("identity");
    result.identity = exprs_.binds("identity");
    section("lift");
    result.lift_pos = tokens_.previous().pos;
    result.lift = exprs_.binds("lift");
    section("merge");
    result.merge_pos = tokens_.previous().pos;
    result.merge = exprs_.binds("merge");
    section("finish");
    result.finish = exprs_.expression_or_tuple();
    close_brace("after `finish`, which ends a reducer");
    return result;
  }

  File& file_;
  Tokens& tokens_;
  ExprParser exprs_;
};

// Programs are one namespace; defs and reducers another, which the built-in names share.
void index_names(File& file) {
  auto fail = [&](const Name& name, const std::string& message, const std::string& origin) {
    throw Error(ErrorCode::redefined, file.where(name.pos), message, "choose another name", origin);
  };
  auto declare = [&](std::unordered_map<std::string_view, std::uint32_t>& space, const Name& name, std::size_t index,
                     const char* what) {
    if (!space.emplace(name.text, static_cast<std::uint32_t>(index)).second)
      fail(name, fmt::format("{} {} is declared twice", what, name.text), "");
  };
  std::unordered_map<std::string_view, std::uint32_t> programs;
  for (std::size_t i = 0; i < file.programs.size(); ++i) declare(programs, file.programs[i].name, i, "program");
  for (std::size_t i = 0; i < file.defs.size(); ++i) declare(file.def_index, file.defs[i].name, i, "def");
  for (std::size_t i = 0; i < file.reducers.size(); ++i) {
    const Name& name = file.reducers[i].name;
    declare(file.reducer_index, name, i, "reducer");
    if (const DefDecl* def = file.find_def(name.text))
      fail(name, fmt::format("{} is a def and a reducer", name.text), fmt::format("The def is at line {}", def->name.pos.line));
  }
  auto refuse_builtin = [&](const Name& name) {
    if (is_builtin(name.text)) fail(name, fmt::format("{} is built in and can not be redefined", name.text), "");
  };
  for (const DefDecl& d : file.defs) refuse_builtin(d.name);
  for (const ReducerDecl& r : file.reducers) refuse_builtin(r.name);
}

}  // namespace

const DefDecl* File::find_def(std::string_view wanted) const {
  auto at = def_index.find(wanted);
  return at == def_index.end() ? nullptr : &defs[at->second];
}
const ReducerDecl* File::find_reducer(std::string_view wanted) const {
  auto at = reducer_index.find(wanted);
  return at == reducer_index.end() ? nullptr : &reducers[at->second];
}

std::shared_ptr<const File> parse_file(const std::string& text, const std::string& name) {
  auto file = std::make_shared<File>();
  file->name = name;
  file->text = text;
  std::vector<Token> words = lex(file->text, file->name);
  const auto programs = std::count_if(words.begin(), words.end(), [](const Token& t) { return t.text == "program"; });
  Tokens tokens(std::move(words), file->name);
  try {
    FileParser(*file, tokens).run();
  } catch (const Error& e) {
    if (programs < 2 || !e.origin.empty()) throw;
    throw Error(e.code, e.where, e.message, e.hint, "No other program of the text is looked at");
  }
  index_names(*file);
  return file;
}

const File& prelude() {
  static const std::shared_ptr<const File> file = parse_file(
#include "language/prelude.inc"
      , "prelude.tile");
  return *file;
}

}  // namespace cosmati::language
