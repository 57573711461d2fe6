// A program before its dtypes and ranks are known: parsed text or a C++ capture. Instantiating it for a binding runs the
// definition through ir::Builder and gives monomorphic tile IR.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/program.h"

namespace cosmati::language {

struct Binding {
  std::map<std::string, DType> types;  // dtype variable -> dtype
  std::map<std::string, int> packs;    // axis pack (`rows...`) -> number of dimensions it stands for
};

enum class TypeClass : std::uint8_t { any_float, any_int, any };

struct Parameter {
  std::string name;
  bool is_tensor = true;
  ir::Access access = ir::Access::in;
  std::optional<DType> dtype;          // fixed, or
  std::string variable;                // the dtype variable
  int rank = 0;                        // dimensions without the pack
  std::string pack;                    // name of the axis pack among the dims, or empty
  bool has_default = false;            // scalars
  std::vector<std::string> dim_names;  // one per dim, for messages: "row", "(g, r)", "i + 2", "rows..."
  Where where;
};

struct Signature {
  std::string name;
  std::vector<std::pair<std::string, TypeClass>> type_variables;
  std::vector<Parameter> parameters;  // declared order
  Where where;
};

class Source {
 public:
  virtual ~Source() = default;
  virtual const Signature& signature() const = 0;
  virtual ir::Program instantiate(const Binding& binding) const = 0;  // throws Error
};

// The programs of a text, in order, prelude known. Throws Error{syntax, ...}. `file` is used in messages only.
std::vector<std::shared_ptr<const Source>> parse(const std::string& text, const std::string& file);
// Every binding that `check` tries: each dtype variable over representative dtypes of its class (all variables equal first),
// packs of 0, 1 and 2 dimensions.
std::vector<Binding> sample_bindings(const Signature& signature);
// A program as text: parse(print(p)) instantiates to a program that prints the same.
std::string print(const ir::Program& p);

}  // namespace cosmati::language
