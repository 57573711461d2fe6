// The arguments of the command line. First every text is read for its form (file, generator or scalar), then files are mapped,
// then generated arrays are filled: `index` needs the shapes of all the others.
// SPDX-License-Identifier: Apache-2.0
#include "tools/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <limits>
#include <optional>

#include "language/source.h"
#include "support/suggest.h"
#include "tools/generate.h"

namespace cosmati::tools {
namespace {

using Kind = Program::Parameter::Kind;

[[noreturn]] void refuse(const std::string& what, const std::string& hint = {}, const Where& where = {}) {
  throw Error(ErrorCode::bad_argument, where, what, hint);
}

bool exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

struct Generated {
  DType dtype;
  std::vector<std::int64_t> shape;
  Generator generator;
};

[[noreturn]] void refuse_type(const std::string& name, const std::string& type) {
  std::vector<std::string> types;
  for (const DTypeInfo& row : dtype_table) types.emplace_back(row.name);
  const std::string near = support::suggest_dtype(type);
  refuse(fmt::format("{}: there is no type '{}'", name, type),
         near.empty() ? fmt::format("the types are {}", fmt::join(types, ", ")) : near);
}

bool is_word(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isalnum(c) || c == '_'; });
}

// `f32[37,1537]:normal`, or nothing where the text has not that form at all; a wrong part of the form is an error.
std::optional<Generated> parse_generated(const std::string& name, const std::string& text) {
  const std::size_t open = text.find('['), close = text.find(']');
  if (open == std::string::npos || close == std::string::npos || close < open || !is_word(text.substr(0, open)))
    return std::nullopt;
  const std::optional<DType> dtype = dtype_from_name(text.substr(0, open));
  if (!dtype) refuse_type(name, text.substr(0, open));
  Generated g{*dtype, {}, Generator::zeros};
  const std::string dims = text.substr(open + 1, close - open - 1);
  for (std::size_t at = 0; at < dims.size();) {
    while (at < dims.size() && dims[at] == ' ') ++at;
    std::int64_t n = 0;
    const auto [end, error] = std::from_chars(dims.data() + at, dims.data() + dims.size(), n);
    std::size_t next = static_cast<std::size_t>(end - dims.data());
    while (next < dims.size() && dims[next] == ' ') ++next;
    const bool last = next == dims.size();
    if (error == std::errc::result_out_of_range) refuse(fmt::format("{}: an extent of '{}' is beyond 64 bits", name, text));
    if (error != std::errc() || (!last && (dims[next] != ',' || next + 1 == dims.size())))
      refuse(fmt::format("{}: '{}' is not a shape", name, dims),
             "extents are whole numbers with commas between, as in f32[37,1537]:normal");
    if (n < 0) refuse(fmt::format("{}: '{}' has the negative extent {}", name, text, n));
    g.shape.push_back(n);
    at = last ? next : next + 1;
  }
  if (close + 1 >= text.size() || text[close + 1] != ':')
    refuse(fmt::format("{}: '{}' names no generator", name, text),
           "write " + text.substr(0, close + 1) + ":GEN with GEN one of " + generator_names());
  const std::optional<Generator> generator = generator_from_name(text.substr(close + 2));
  if (!generator)
    refuse(fmt::format("{}: there is no generator '{}'", name, text.substr(close + 2)), "one of " + generator_names());
  g.generator = *generator;
  return g;
}

// A number, true or false; nothing where the text is none of them.
std::optional<Argument> parse_scalar(const std::string& name, const std::string& text) {
  if (text == "true") return true;
  if (text == "false") return false;
  const char* begin = text.data();
  const char* const end = begin + text.size();
  std::int64_t whole = 0;
  if (auto [p, e] = std::from_chars(begin, end, whole); e == std::errc() && p == end) return whole;
  double real = 0;
  if (auto [p, e] = std::from_chars(begin, end, real); p == end && begin != end) {
    if (e == std::errc()) return real;
    if (e == std::errc::result_out_of_range)
      refuse(fmt::format("{}: {} is beyond 64 bits", name, text), "give a number that 64 bits hold");
  }
  return std::nullopt;
}

// Whether the parameter takes floating values only: fixed to one, or a variable of the class `float`.
bool takes_floats(const language::Signature& signature, const Program::Parameter& parameter) {
  if (auto fixed = dtype_from_name(parameter.type)) return is_float(*fixed);
  for (const auto& [variable, type_class] : signature.type_variables)
    if (variable == parameter.type) return type_class == language::TypeClass::any_float;
  return false;
}

// Gives the bytes of a file the element type that the argument or the parameter says. Whether that took a guess: integers that
// NumPy has a name for may be what they say they are, unless the program wants a type that NumPy has no name for.
bool set_type(Array& array, std::optional<DType> stated, const language::Signature& signature,
              const Program::Parameter& parameter) {
  const DType held = array.view.dtype;
  const bool bits = array.opaque || held == DType::u8_ || held == DType::u16_;
  const std::optional<DType> fixed_type = dtype_from_name(parameter.type);
  std::optional<DType> wanted = stated;
  if (!wanted && bits && takes_floats(signature, parameter)) {
    if (fixed_type && byte_size(*fixed_type) == byte_size(held)) wanted = fixed_type;
    if (!fixed_type && held == DType::u16_) wanted = DType::bf16_;
    if (!fixed_type && held == DType::u8_)
      refuse(fmt::format("{}: one byte an element may be f8e4m3 or f8e5m2", parameter.name),
             fmt::format("say which: {}=f8e4m3:FILE", parameter.name));
  }
  const bool guessed = wanted && !stated && !array.opaque && *wanted != held && !(fixed_type && *fixed_type != DType::f16_);
  if (wanted && *wanted == held) array.opaque = false;
  if (wanted && *wanted != held) {
    if (!bits || byte_size(*wanted) != byte_size(held) || is_bool(*wanted))
      refuse(fmt::format("{}: a file of {} elements cannot be read as {}", parameter.name, name(held), name(*wanted)));
    array.view.dtype = *wanted;
    array.opaque = false;
  }
  if (array.opaque)
    refuse(fmt::format("{}: the file holds opaque elements of {} byte{}", parameter.name, byte_size(held),
                       byte_size(held) == 1 ? "" : "s"),
           fmt::format("say which type they are: {}=bf16:FILE", parameter.name));
  return guessed;
}

// `bf16:FILE` taken apart; a path that exists wins.
std::pair<std::optional<DType>, std::string> split_type(const std::string& text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos || exists(text)) return {std::nullopt, text};
  const std::optional<DType> dtype = dtype_from_name(text.substr(0, colon));
  return dtype ? std::pair{dtype, text.substr(colon + 1)} : std::pair{dtype, text};
}

const char* kind_text(Kind kind) {
  static constexpr const char* kinds[] = {"in", "out", "inout", "scalar"};
  return kinds[static_cast<int>(kind)];
}

std::string declaration(const Program::Parameter& p) { return fmt::format("{}: {}{}", p.name, p.type, p.shape); }

// What may be given for a parameter, with a generated array of its type and number of dimensions.
std::string forms(const language::Signature& signature, const Program::Parameter& parameter) {
  if (parameter.kind == Kind::scalar)
    return parameter.type == "bool" ? fmt::format("{0}=true or {0}=false", parameter.name) : parameter.name + "=NUMBER";
  static constexpr int sizes[] = {2, 3, 4, 5, 8, 37, 1537};
  const auto of = std::find_if(signature.parameters.begin(), signature.parameters.end(),
                               [&](const auto& p) { return p.name == parameter.name; });
  std::vector<std::string> extents;
  for (std::size_t d = of->dim_names.size(), k = std::size(sizes); d-- > 0;) {
    const bool fixed = std::isdigit(static_cast<unsigned char>(of->dim_names[d][0]));
    extents.insert(extents.begin(), fixed ? of->dim_names[d] : std::to_string(sizes[k = k > 0 ? k - 1 : 0]));
  }
  const bool floats = takes_floats(signature, parameter);
  const std::optional<DType> fixed = dtype_from_name(parameter.type);
  const std::string type = fixed ? std::string(name(*fixed)) : floats ? "f32" : "i32";
  return fmt::format("{0}=FILE.npy, or generated as in {0}={1}[{2}]:{3}", parameter.name, type, fmt::join(extents, ","),
                     floats ? "normal" : "uniform");
}

// An array that is not generated: a file. Texts of another form are told apart from files that are missing.
Array read_array(const std::string& text, const language::Signature& signature, const Program::Parameter& parameter,
                 std::vector<std::string>& notes) {
  const auto [dtype, path] = split_type(text);
  if (!exists(path)) {
    const std::string legal = "give " + forms(signature, parameter),
                      is = fmt::format("{} is a tensor {}{}", parameter.name, parameter.type, parameter.shape);
    if (parse_scalar(parameter.name, text))
      refuse(fmt::format("{}, but the scalar {} is given", is, text), legal, parameter.where);
    if (generator_from_name(path))
      refuse(fmt::format("{}, but '{}' says no {}", is, text, dtype ? "extents" : "type and extents"), legal, parameter.where);
    const std::size_t colon = text.find(':');
    if (colon != std::string::npos && exists(text.substr(colon + 1))) refuse_type(parameter.name, text.substr(0, colon));
    throw Error(ErrorCode::bad_file, Where{path, 0, 0}, fmt::format("there is no such file to read {} from", parameter.name),
                legal);
  }
  Array array = read_npy(path);
  const DType held = array.view.dtype;
  if (set_type(array, dtype, signature, parameter))
    notes.push_back(fmt::format("{0} holds {1}, and its bits are read as {2}, as {3}={2}:{0} would say", path, name(held),
                                name(array.view.dtype), parameter.name));
  return array;
}

std::string parameter_list(const std::vector<Program::Parameter>& parameters) {
  std::string all;
  for (const auto& p : parameters)
    all += fmt::format("{}{}{}", all.empty() ? "" : ", ", p.kind == Kind::scalar ? "" : kind_text(p.kind) + std::string(" "),
                       declaration(p));
  return all;
}

}  // namespace

std::pair<std::string, std::string> split_assignment(const std::string& text, const std::string& option) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
    refuse(fmt::format("{}'{}' is not of the form name=value", option.empty() ? "" : option + " ", text),
           "write name=value, without blanks");
  return {text.substr(0, equals), text.substr(equals + 1)};
}

Bindings::Bindings(const Program& program, const std::vector<std::string>& texts, std::uint64_t seed, const Fraction& progress) {
  const std::vector<Program::Parameter> parameters = program.parameters();
  for (const auto& parameter : parameters) slots_.push_back({.parameter = parameter, .array = {}});
  const language::Signature& signature = program.source().signature();

  std::vector<std::pair<Slot*, Generated>> generated;
  for (const std::string& text : texts) {
    const auto [name, value] = split_assignment(text, "");
    Slot* s = slot(name);
    if (!s)
      refuse(fmt::format("{} has no parameter '{}'", program.name(), name), "it takes " + parameter_list(parameters),
             signature.where);
    if (s->given) refuse(fmt::format("'{}' is given twice", name), "give it once", s->parameter.where);
    s->given = true;
    if (s->parameter.kind == Kind::scalar) {
      const std::optional<Argument> scalar = parse_scalar(name, value);
      if (!scalar)
        refuse(fmt::format("{} is a scalar {}, but '{}' is not a number, true or false", name, s->parameter.type, value),
               "give " + forms(signature, s->parameter), s->parameter.where);
      s->scalar = *scalar;
    } else if (auto g = exists(value) ? std::nullopt : parse_generated(name, value)) {
      s->array.view = TensorView(nullptr, g->dtype, g->shape);
      generated.emplace_back(s, std::move(*g));
    } else {
      s->array = read_array(value, signature, s->parameter, notes_);
      if (s->parameter.kind != Kind::in) s->array = dense_copy(s->array.view, name);
      if (s->parameter.kind == Kind::out)
        notes_.push_back(
            fmt::format("{} gives {} its shape and stays as it is: --out {}=FILE writes the result", value, name, name));
    }
  }
  for (const Slot& s : slots_) {
    if (s.given || s.parameter.kind == Kind::out || s.parameter.has_default) continue;
    refuse(fmt::format("{} needs {}", program.name(), declaration(s.parameter)), "give " + forms(signature, s.parameter),
           s.parameter.where);
  }
  const Arguments shapes = arguments();
  double all = 0, before = 0;  // elements
  for (const auto& [s, g] : generated) all += static_cast<double>(s->array.view.elements());
  for (auto& [s, g] : generated) {
    s->array = make_array(g.dtype, g.shape, s->parameter.name);
    std::optional<ContractBounds> bounds;
    if (g.generator == Generator::index) bounds = contract_bounds(program, shapes, s->parameter.name);
    const auto own = static_cast<double>(s->array.view.elements());
    const Fraction part = [&, from = before](double done) { progress((from + done * own) / all); };
    generate(s->array.view, g.generator, seed, s->parameter.name, bounds, progress ? part : Fraction());
    before += own;
  }
}

Bindings::Slot* Bindings::slot(const std::string& name) {
  for (Slot& s : slots_)
    if (s.parameter.name == name) return &s;
  return nullptr;
}

Arguments Bindings::arguments() const {
  Arguments all;
  for (const Slot& s : slots_) {
    if (!s.given) continue;
    if (s.parameter.kind == Kind::scalar) {
      all.emplace_back(s.parameter.name, s.scalar);
    } else {
      all.emplace_back(s.parameter.name, s.array.view);
    }
  }
  return all;
}

void Bindings::add_outputs(const std::vector<Function::OutputShape>& outputs) {
  for (const auto& output : outputs) {
    Slot* s = slot(output.name);
    s->array = make_array(output.dtype, output.shape, output.name);
    s->given = true;
  }
}

Bindings Bindings::copy_written() const {
  Bindings copy = *this;
  for (Slot& s : copy.slots_)
    if (s.given && (s.parameter.kind == Kind::out || s.parameter.kind == Kind::inout))
      s.array = dense_copy(s.array.view, s.parameter.name);
  return copy;
}

const TensorView* Bindings::find(const std::string& name) const {
  for (const Slot& s : slots_)
    if (s.parameter.name == name && s.given && s.parameter.kind != Kind::scalar) return &s.array.view;
  return nullptr;
}

std::vector<std::pair<std::string, TensorView>> Bindings::written() const {
  std::vector<std::pair<std::string, TensorView>> all;
  for (const Slot& s : slots_)
    if (s.given && (s.parameter.kind == Kind::out || s.parameter.kind == Kind::inout))
      all.emplace_back(s.parameter.name, s.array.view);
  return all;
}

std::int64_t Bindings::moved_bytes() const {
  std::int64_t bytes = 0;
  for (const Slot& s : slots_) {
    if (!s.given || s.parameter.kind == Kind::scalar) continue;
    bytes += s.array.view.elements() * byte_size(s.array.view.dtype) * (s.parameter.kind == Kind::inout ? 2 : 1);
  }
  return bytes;
}

}  // namespace cosmati::tools
