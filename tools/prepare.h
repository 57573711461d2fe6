// What commands on a program at arguments begin with, and files that appear whole.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <utility>

#include "tools/arguments.h"
#include "tools/commands.h"

namespace cosmati::tools {

struct Prepared {
  Program program;
  Bindings bindings;
  Function function;
};
// Loads the program, its arguments and the outputs they imply. Throws Error.
Prepared prepare(const Invocation& invocation, const Report& report);

// The device that an invocation names, else the one that is picked. Throws Error.
Device device_of(const Invocation& invocation);
// --set knob=v, each knob once. Throws Error{bad_knob}.
std::map<std::string, std::string> knobs_of(const Invocation& invocation);

// Written under a temporary name beside it, then renamed. Throws Error{bad_file}; nothing is left behind then.
void write_text(const std::string& path, const std::string& text);
// Throws what write_text() would, as far as can be known before the work whose result is to be written. Leaves nothing behind.
void require_writable(const std::string& path);

}  // namespace cosmati::tools
