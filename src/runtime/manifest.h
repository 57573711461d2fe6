// manifest.json of a package: what a launch needs to know about the code beside it.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "ir/program.h"
#include "plan/facts.h"
#include "runtime/kernel.h"

namespace cosmati::runtime {

constexpr int package_format = 1;  // of the manifest, of what its texts mean, and of how code is called
constexpr const char* manifest_name = "manifest.json";

struct Manifest {
  std::string program;  // its text, with every dtype and rank fixed
  std::string device, architecture;
  std::vector<std::string> features;  // of the processor, beyond the base of its architecture
  plan::Facts facts;
  KernelImage image;
  std::string file, hash;  // of the code
};

std::string to_json(const Manifest& manifest);
// Throws Error{bad_file} where `json` is not what to_json() writes. `path` is for messages.
Manifest manifest_of(const std::string& json, const std::string& path);

// A hash of the manifest without its file and hash, and of how this library numbers the program's axes and parameters, by which
// the kernel names them. The symbols of the code begin with it: a manifest that was changed, or that this library reads otherwise
// than the one that wrote it, finds no code. `program` is what `manifest.program` says.
std::string identity(const Manifest& manifest, const ir::Program& program);
std::string symbol_prefix(const std::string& identity);

}  // namespace cosmati::runtime
