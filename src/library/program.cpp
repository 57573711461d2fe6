// Programs by text, file and shipped name.
// SPDX-License-Identifier: Apache-2.0
#include <cosmati/program.h>

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <random>

#include "language/source.h"
#include "library/check_program.h"
#include "library/shipped.h"
#include "oracle/oracle.h"
#include "prove/prove.h"
#include "support/deep_stack.h"
#include "support/read_file.h"
#include "support/suggest.h"

namespace cosmati {
namespace {

std::vector<Program> wrap(const std::string& text, const std::string& file) {
  std::vector<Program> programs;
  for (auto& source : language::parse(text, file)) programs.emplace_back(source);
  return programs;
}

std::vector<Program> read(const std::string& file) {
  std::vector<Program> programs = wrap(support::read_file(file), file);
  if (programs.empty())
    throw Error(ErrorCode::syntax, {file, 0, 0}, fmt::format("{} holds no program", file), "write `program NAME(...) { ... }`");
  return programs;
}

std::string listed(const std::vector<Program>& programs) {
  std::string names;
  for (const Program& program : programs) names += (names.empty() ? "" : ", ") + program.name();
  return names;
}

// The programs of a spec, and the name asked for among them.
std::pair<std::vector<Program>, std::string> resolve(const std::string& spec) {
  std::error_code ec;
  if (std::filesystem::exists(spec, ec)) return {read(spec), ""};
  std::size_t colon = spec.rfind(':');
  if (colon != std::string::npos && std::filesystem::exists(spec.substr(0, colon), ec)) {
    std::string file = spec.substr(0, colon);
    return {read(file), spec.substr(colon + 1)};
  }
  for (const auto& [name, text] : library::shipped())
    if (name == spec || name + ".tile" == spec) return {wrap(std::string(text), name + ".tile"), ""};
  std::string names;
  const std::string near = support::suggest(spec, shipped_programs());
  for (const std::string& name : shipped_programs()) names += (names.empty() ? "" : ", ") + name;
  throw Error(ErrorCode::unknown_name, {}, fmt::format("`{}` is neither a file nor a shipped program", spec),
              near.empty() ? "the shipped programs are " + names : near);
}

}  // namespace

std::string Program::name() const { return source_->signature().name; }

std::vector<Program::Parameter> Program::parameters() const {
  std::vector<Parameter> parameters;
  for (const language::Parameter& p : source_->signature().parameters) {
    Parameter out{p.name, Parameter::Kind::scalar, p.dtype ? std::string(cosmati::name(*p.dtype)) : p.variable,
                  "",     p.has_default,           p.where};
    if (p.is_tensor) {
      out.kind = p.access == ir::Access::in    ? Parameter::Kind::in
                 : p.access == ir::Access::out ? Parameter::Kind::out
                                               : Parameter::Kind::inout;
      for (const std::string& dim : p.dim_names) out.shape += (out.shape.empty() ? "[" : ", ") + dim;
      out.shape += out.shape.empty() ? "[]" : "]";
    }
    parameters.push_back(std::move(out));
  }
  return parameters;
}

std::vector<Program> parse(const std::string& text, const std::string& file) { return wrap(text, file); }

Program load(const std::string& spec) {
  auto [programs, wanted] = resolve(spec);
  if (wanted.empty()) {
    if (programs.size() == 1) return programs[0];
    throw Error(ErrorCode::unknown_name, {}, fmt::format("{} holds {} programs", spec, programs.size()),
                fmt::format("name one as {}:NAME; they are {}", spec, listed(programs)));
  }
  for (const Program& program : programs)
    if (program.name() == wanted) return program;
  throw Error(ErrorCode::unknown_name, {}, fmt::format("{} holds no program `{}`", spec, wanted), "it holds " + listed(programs));
}

std::vector<Program> load_all(const std::string& spec) {
  auto [programs, wanted] = resolve(spec);
  if (wanted.empty()) return programs;
  return {load(spec)};
}

std::vector<std::string> shipped_programs() {
  std::vector<std::string> names;
  for (const auto& [name, text] : library::shipped()) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

std::string print(const Program& program, const std::vector<std::pair<std::string, DType>>& types,
                  const std::vector<std::pair<std::string, int>>& packs) {
  language::Binding binding;
  binding.types.insert(types.begin(), types.end());
  binding.packs.insert(packs.begin(), packs.end());
  return language::print(program.source().instantiate(binding));
}

void check(const Program& program, std::uint64_t seed) {
  bool first = true;
  for (const language::Binding& binding : language::sample_bindings(program.source().signature())) {
    try {
      ir::Program p = program.source().instantiate(binding);
      support::on_deep_stack([&] {
        prove::require_proven(p);
        library::check_by_oracle(p, seed);
      });
    } catch (const Error& e) {
      if (first || binding.types.empty()) throw;
      // Its message speaks of types that the text does not name.
      std::string types;
      for (const auto& [variable, type] : binding.types)
        types += fmt::format("{}{} is {}", types.empty() ? "Here " : ", ", variable, cosmati::name(type));
      throw Error(e.code, e.where, e.message, e.hint, e.origin.empty() ? types : e.origin + ". " + types);
    }
    first = false;
  }
}

}  // namespace cosmati
