// The arguments of the command line: `name=file.npy`, `name=bf16:file.npy`, `name=0.5`, `name=f32[37,1537]:normal`.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <cosmati/program.h>
#include <cosmati/runtime.h>

#include "tools/npy.h"

namespace cosmati::tools {

// The arrays and scalars of one run, in the order of the program's parameters.
class Bindings {
 public:
  // Reads or generates every argument. Throws Error{bad_argument} for a name the program does not have, one given twice, a
  // missing input, or an argument of the wrong form; Error{bad_file} for a file that is not what it should be.
  Bindings(const Program& program, const std::vector<std::string>& texts, std::uint64_t seed, const Fraction& progress = {});

  Arguments arguments() const;
  // Makes the outputs that no argument named.
  void add_outputs(const std::vector<Function::OutputShape>& outputs);
  // The same bindings with copies of everything the program writes.
  Bindings copy_written() const;

  const TensorView* find(const std::string& name) const;
  // What the program writes, in declared order.
  std::vector<std::pair<std::string, TensorView>> written() const;
  // What was taken for granted about the arguments, for whoever gave them.
  const std::vector<std::string>& notes() const { return notes_; }
  // Bytes that a run reads and writes, each tensor counted once a direction.
  std::int64_t moved_bytes() const;

 private:
  struct Slot {
    Program::Parameter parameter;
    Array array;  // tensors
    Argument scalar = 0.0;
    bool given = false;
  };
  Slot* slot(const std::string& name);
  std::vector<Slot> slots_;
  std::vector<std::string> notes_;
};

// `name=value` taken apart; `option` names the option in the message.
std::pair<std::string, std::string> split_assignment(const std::string& text, const std::string& option);

}  // namespace cosmati::tools
