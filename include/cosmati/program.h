// Program: the text or capture of one tile program. Immutable, cheap to copy, safe to share between threads.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <cosmati/dtype.h>
#include <cosmati/error.h>
#include <cosmati/export.h>

namespace cosmati {

namespace language {
class Source;
}

class COSMATI_API Program {
 public:
  explicit Program(std::shared_ptr<const language::Source> source) : source_(std::move(source)) {}
  std::string name() const;
  const language::Source& source() const { return *source_; }

  // What a caller must hand over, in declared order.
  struct Parameter {
    std::string name;
    enum class Kind { in, out, inout, scalar } kind;
    std::string type;   // "f32", or the dtype variable
    std::string shape;  // "[row, col]"; empty for a scalar
    bool has_default = false;
    Where where;  // its declaration
  };
  std::vector<Parameter> parameters() const;

 private:
  std::shared_ptr<const language::Source> source_;
};

// All programs of a text. Throws Error{syntax, ...} with line and column in `file`.
COSMATI_API std::vector<Program> parse(const std::string& text, const std::string& file = "<text>");
// `file`, `file:name`, or the name of a shipped program (NAME or NAME.tile). A path that exists wins. Throws Error{bad_file,
// unknown_name, syntax}.
COSMATI_API Program load(const std::string& spec);
// All programs of `spec` (a file, or one shipped program).
COSMATI_API std::vector<Program> load_all(const std::string& spec);
// The names of the programs that the library ships, sorted.
COSMATI_API std::vector<std::string> shipped_programs();
// The text of a program at given dtypes, printed from its IR: types binds dtype variables ("T=f32"), packs axis packs.
COSMATI_API std::string print(const Program& program, const std::vector<std::pair<std::string, DType>>& types,
                              const std::vector<std::pair<std::string, int>>& packs = {});

// `cosmati check`: parses, types and proves, then runs the oracle's cut, merge and reducer-law checks on seeded extents 0..5,
// for representative dtypes. Throws the first Error.
COSMATI_API void check(const Program& program, std::uint64_t seed = 0);

}  // namespace cosmati
