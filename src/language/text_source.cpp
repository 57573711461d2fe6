// Source for text: a file's syntax tree and one of its programs. Signatures are read from the tree; instantiation elaborates it.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "language/elaborate.h"
#include "language/names.h"
#include "support/deep_stack.h"
#include "support/suggest.h"

namespace cosmati::language {
namespace {

std::string describe(const DimDecl& dim) {
  const FactorDecl& first = dim.factors[0];
  if (!first.axis) return std::to_string(first.offset);
  if (dim.pack) return fmt::format("{}...", first.axis->text);
  if (dim.factors.size() == 1) {
    if (first.offset == 0) return std::string(first.axis->text);
    return fmt::format("{} {} {}", first.axis->text, first.offset < 0 ? '-' : '+', std::abs(first.offset));
  }
  std::string text = "(";
  for (const FactorDecl& factor : dim.factors) text += fmt::format("{}{}", text.size() > 1 ? ", " : "", factor.axis->text);
  return text + ")";
}

void check_axes(const File& file, const ParamDecl& param) {
  std::set<std::string_view> seen;
  int packs = 0;
  for (const DimDecl& dim : param.dims) {
    packs += dim.pack;
    for (const FactorDecl& factor : dim.factors) {
      if (!factor.axis) continue;
      if (!seen.insert(factor.axis->text).second)
        throw Error(ErrorCode::repeated_axis, file.where(factor.axis->pos),
                    fmt::format("axis {} appears twice in the dimensions of {}", factor.axis->text, param.name.text),
                    fmt::format("name the second one differently and declare it: axis {0}2 = extent({0})", factor.axis->text));
      if (packs > 1 && dim.pack)
        throw Error(ErrorCode::not_supported, file.where(factor.axis->pos),
                    fmt::format("{} has two axis packs, and nothing tells how its dimensions divide", param.name.text));
    }
  }
}

class TextSource final : public Source {
 public:
  TextSource(std::shared_ptr<const File> file, const ProgramDecl& decl)
      : file_(std::move(file)), decl_(decl), signature_(signature_of(*file_, decl)) {}
  const Signature& signature() const override { return signature_; }
  ir::Program instantiate(const Binding& binding) const override {
    return support::on_deep_stack([&] { return Elaborator(*file_, decl_, binding).run(); });
  }

 private:
  std::shared_ptr<const File> file_;
  const ProgramDecl& decl_;  // in *file_
  Signature signature_;
};

// The types tried for a class of dtype variables: narrow and wide, and each way of computing.
std::vector<DType> representatives(TypeClass type_class) {
  switch (type_class) {
    case TypeClass::any_float:
      return {DType::f32_, DType::bf16_, DType::f16_, DType::f64_};
    case TypeClass::any_int:
      return {DType::i32_, DType::i8_, DType::u8_, DType::u32_, DType::i64_};
    case TypeClass::any:
      break;
  }
  return {DType::f32_, DType::bf16_, DType::i32_, DType::u8_};
}

}  // namespace

Signature signature_of(const File& file, const ProgramDecl& program) {
  Signature result;
  result.name = program.name.text;
  result.where = file.where(program.name.pos);
  std::vector<std::string> types;
  for (const TypeVariable& t : program.types) {
    const std::string name(t.name.text);
    if (is_builtin(name) || std::find(types.begin(), types.end(), name) != types.end())
      throw Error(ErrorCode::redefined, file.where(t.name.pos),
                  fmt::format("type variable {} is {}", name, is_builtin(name) ? "a built-in name" : "declared twice"),
                  "choose another name");
    types.push_back(name);
    result.type_variables.emplace_back(name, t.type_class);
  }
  std::set<std::string_view> names;
  for (const ParamDecl& param : program.params) {
    if (!names.insert(param.name.text).second)
      throw Error(ErrorCode::redefined, file.where(param.name.pos),
                  fmt::format("parameter {} is declared twice", param.name.text), "choose another name");
    Parameter p;
    p.name = param.name.text;
    p.where = file.where(param.name.pos);
    p.is_tensor = param.is_tensor;
    p.access = param.access;
    p.has_default = param.fallback.has_value();
    const std::string type(param.type.text);
    if (std::find(types.begin(), types.end(), type) != types.end()) {
      p.variable = type;
    } else if (p.dtype = dtype_from_name(type); !p.dtype) {
      std::string hint = support::suggest_dtype(type, types);
      if (hint.empty()) hint = fmt::format("declare it: program {}<{}: float>", program.name.text, type);
      throw Error(ErrorCode::unknown_name, file.where(param.type.pos), fmt::format("nothing declares the type {}", type), hint);
    }
    check_axes(file, param);
    for (const DimDecl& dim : param.dims) {
      p.dim_names.push_back(describe(dim));
      if (dim.pack)
        p.pack = dim.factors[0].axis->text;
      else
        ++p.rank;
    }
    result.parameters.push_back(std::move(p));
  }
  return result;
}

std::vector<std::shared_ptr<const Source>> parse(const std::string& text, const std::string& file_name) {
  const std::shared_ptr<const File> file = support::on_deep_stack([&] { return parse_file(text, file_name); });
  std::vector<std::shared_ptr<const Source>> result;
  for (const ProgramDecl& program : file->programs) result.push_back(std::make_shared<TextSource>(file, program));
  return result;
}

std::vector<Binding> sample_bindings(const Signature& signature) {
  std::vector<std::map<std::string, DType>> types;
  auto add = [&](const std::map<std::string, DType>& t) {
    if (std::find(types.begin(), types.end(), t) == types.end()) types.push_back(t);
  };
  std::map<std::string, DType> first;
  std::size_t most = 1;
  for (const auto& [name, type_class] : signature.type_variables) {
    first[name] = representatives(type_class)[0];
    most = std::max(most, representatives(type_class).size());
  }
  for (std::size_t i = 0; i < most; ++i) {  // all variables equal, as far as their classes allow
    std::map<std::string, DType> equal;
    for (const auto& [name, type_class] : signature.type_variables) {
      const std::vector<DType> own = representatives(type_class);
      equal[name] = own[std::min(i, own.size() - 1)];
    }
    add(equal);
  }
  for (const auto& [name, type_class] : signature.type_variables)  // then one at a time
    for (DType type : representatives(type_class)) {
      std::map<std::string, DType> one = first;
      one[name] = type;
      add(one);
    }
  std::set<std::string> packs;
  for (const Parameter& p : signature.parameters)
    if (!p.pack.empty()) packs.insert(p.pack);
  std::vector<Binding> result;
  for (const auto& t : types)
    for (int rank : {1, 0, 2}) {
      Binding binding{t, {}};
      for (const std::string& pack : packs) binding.packs[pack] = rank;
      result.push_back(std::move(binding));
      if (packs.empty()) break;
    }
  return result;
}

}  // namespace cosmati::language
