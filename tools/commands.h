// The commands of the tool: each reads its options, fills a Report and throws cosmati::Error where the user is wrong.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tools/report.h"

namespace cosmati::tools {

// What run, plan and emit have in common.
struct Invocation {
  std::string program;
  std::vector<std::string> arguments;  // name=ARG
  std::string device;                  // empty: Device::pick()
  std::vector<std::string> knobs;      // knob=value
  std::string plan;                    // a file, or empty
  std::uint64_t seed = 0;
};
struct RunOptions {
  std::vector<std::string> outs;    // name=F.npy
  std::vector<std::string> probes;  // NAME=F.npy
  bool check = false, time = false;
};

void run(const Invocation& invocation, const RunOptions& options, Report& report);
void check(const std::vector<std::string>& files, std::uint64_t seed, Report& report);
void plan(const Invocation& invocation, const std::string& save, const std::string& svg, Report& report);
void emit(const Invocation& invocation, const std::string& as, Report& report);
// The last word of the arguments is the folder.
void package(const Invocation& invocation, Report& report);
void list_devices(Report& report);
void docs(const std::string& page, const std::string& folder, Report& report);

}  // namespace cosmati::tools
