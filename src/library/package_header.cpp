// Names of the program become names of C++: those that C++ keeps for itself get an underscore.
// SPDX-License-Identifier: Apache-2.0
#include "library/package_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include <cosmati/version.h>

namespace cosmati::library {
namespace {

// Words that a program may use as a name and C++ may not, and the names that the header itself uses.
constexpr std::string_view taken[] = {
    // sorted [
    "Argument",    "Array",     "DType",     "Launch",       "Package",  "alignas",  "alignof",
    "and",         "and_eq",    "asm",       "auto",         "bitand",   "bitor",    "bool",
    "break",       "case",      "catch",     "char",         "char16_t", "char32_t", "char8_t",
    "class",       "co_await",  "co_return", "co_yield",     "compl",    "concept",  "const",
    "const_cast",  "consteval", "constexpr", "constinit",    "continue", "decltype", "default",
    "delete",      "do",        "double",    "dynamic_cast", "else",     "enum",     "explicit",
    "export",      "extern",    "false",     "float",        "for",      "friend",   "given",
    "goto",        "if",        "inline",    "int",          "long",     "mutable",  "namespace",
    "new",         "noexcept",  "not",       "not_eq",       "nullptr",  "operator", "or",
    "or_eq",       "package",   "private",   "protected",    "public",   "register", "reinterpret_cast",
    "requires",    "return",    "short",     "signed",       "sizeof",   "static",   "static_assert",
    "static_cast", "std",       "struct",    "switch",       "template", "this",     "thread_local",
    "throw",       "true",      "try",       "typedef",      "typeid",   "typename", "union",
    "unsigned",    "using",     "virtual",   "void",         "volatile", "wchar_t",  "while",
    "xor",         "xor_eq"
    // ]
};

std::string cpp_name(const std::string& name) {
  return std::find(std::begin(taken), std::end(taken), name) == std::end(taken) ? name : name + "_";
}

// An element in memory.
std::string cpp_type(DType t) {
  if (is_bool(t)) return "bool";
  if (t == DType::f32_) return "float";
  if (t == DType::f64_) return "double";
  return fmt::format("std::{}int{}_t", is_signed(t) ? "" : "u", 8 * byte_size(t));  // of other floats the bits
}

std::string scalar_type(DType t) { return is_float(t) ? (t == DType::f64_ ? "double" : "float") : cpp_type(t); }

std::string_view access_word(ir::Access access) {
  return access == ir::Access::in ? "in" : access == ir::Access::out ? "out" : "inout";
}

// "in x: f32[row, col]", "eps: f32, which may be left out".
std::string described(const language::Parameter& p) {
  if (!p.is_tensor) return fmt::format("{}: {}{}", p.name, name(*p.dtype), p.has_default ? ", which may be left out" : "");
  const bool bits = is_float(*p.dtype) && *p.dtype != DType::f32_ && *p.dtype != DType::f64_;
  return fmt::format("{} {}: {}[{}]{}", access_word(p.access), p.name, name(*p.dtype), fmt::join(p.dim_names, ", "),
                     bits ? fmt::format(", elements as {}", cpp_type(*p.dtype)) : "");
}

std::string declared(const language::Parameter& p) {
  if (p.is_tensor)
    return fmt::format("Array<{}{}, DType::{}_, {}> {}", p.access == ir::Access::in ? "const " : "", cpp_type(*p.dtype),
                       name(*p.dtype), p.rank, cpp_name(p.name));
  if (p.has_default) return fmt::format("std::optional<{}> {}", scalar_type(*p.dtype), cpp_name(p.name));
  return fmt::format("{} {}", scalar_type(*p.dtype), cpp_name(p.name));
}

}  // namespace

std::string package_header(const runtime::Manifest& manifest, const language::Signature& signature, const std::string& identity) {
  std::string parameters, arguments, documentation;
  for (std::size_t i = 0; i < signature.parameters.size(); ++i) {
    const language::Parameter& p = signature.parameters[i];
    // What may be left out at the end has a default in C++ too.
    const bool optional = std::all_of(signature.parameters.begin() + static_cast<std::ptrdiff_t>(i), signature.parameters.end(),
                                      [](const language::Parameter& later) { return later.has_default; });
    parameters += fmt::format(",\n    {}{}", declared(p), optional ? " = {}" : "");
    arguments += (i ? ", " : "") + cpp_name(p.name);
    documentation += fmt::format("//   {}\n", described(p));
  }
  for (const std::string& condition : manifest.image.domain)
    if (condition.find(": ") == condition.npos) documentation += fmt::format("// for arguments where {}\n", condition);
  if (std::none_of(manifest.image.domain.begin(), manifest.image.domain.end(),
                   [](const std::string& condition) { return condition.find(" is exactly ") != condition.npos; }))
    documentation += "// for arguments where no output shares memory with another argument\n";
  const std::string name = cpp_name(signature.name);
  std::string text = fmt::format(R"(// {} as a function of C++: written by cosmati {} for the package that this header lies in.
#pragma once
#include <cosmati/package.h>

namespace cosmati::packaged {{

// The program {}:
{}// Throws cosmati::Error, before anything is written: extent_mismatch where two arguments disagree about an extent, bad_argument for
// memory, strides or a scalar that does not fit, overlap where an output shares memory, contract_broken where the data of an
// argument is not what the program requires.
)",
                                 signature.name, COSMATI_VERSION, signature.name, documentation);
  for (const auto& [result, prefix, call] : {std::tuple{"void", "", "call"}, std::tuple{"Launch", "prepare_", "prepare"}})
    text += fmt::format(
        "inline {} {}{}(\n    const Package& package{}) {{\n  const std::optional<Argument> given[] = {{{}}};\n  "
        "{}package.require(\"{}\")"
        ".{}(given);\n}}\n{}",
        result, prefix, name, parameters, arguments, std::string_view(result) == "void" ? "" : "return ", identity, call,
        *prefix ? "" : "\n// The same, checked now and launched later, any number of times.\n");
  return text + "\n}  // namespace cosmati::packaged\n";
}

}  // namespace cosmati::library
