// From an invocation to a function and its arguments.
// SPDX-License-Identifier: Apache-2.0
#include "tools/prepare.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>

#include "support/read_file.h"
#include "tools/interrupt.h"
#include "tools/npy.h"
#include "tools/progress.h"

namespace cosmati::tools {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw Error(ErrorCode::bad_file, Where{path, 0, 0}, "the file cannot be written: " + why);
}

std::string temporary_of(const std::string& path) { return fmt::format("{}.{}", path, ::getpid()); }

}  // namespace

Device device_of(const Invocation& invocation) {
  return invocation.device.empty() ? Device::pick() : Device::named(invocation.device);
}

std::map<std::string, std::string> knobs_of(const Invocation& invocation) {
  std::map<std::string, std::string> knobs;
  for (const std::string& text : invocation.knobs) {
    auto [knob, value] = split_assignment(text, "--set");
    if (!knobs.emplace(knob, value).second) throw Error(ErrorCode::bad_knob, {}, fmt::format("knob '{}' is set twice", knob));
  }
  return knobs;
}

Prepared prepare(const Invocation& invocation, const Report& report) {
  Program program = load(invocation.program);
  Options options;
  options.knobs = knobs_of(invocation);
  if (!invocation.plan.empty()) options.plan = support::read_file(invocation.plan);
  Device device = device_of(invocation);
  std::optional<Bindings> bindings;
  {
    Progress progress("reading and generating arguments");
    bindings.emplace(program, invocation.arguments, invocation.seed, progress.teller());
  }
  for (const std::string& note : bindings->notes()) report.note(note);
  Function function(program, device, options);
  bindings->add_outputs(function.missing_outputs(bindings->arguments()));
  return {std::move(program), std::move(*bindings), std::move(function)};
}

void write_text(const std::string& path, const std::string& text) {
  require_replaceable(path);
  const Uninterrupted alone;
  const fs::path temporary = temporary_of(path);
  errno = 0;
  std::ofstream out(temporary, std::ios::binary);
  out << text;
  out.close();
  std::error_code problem;
  if (out) fs::rename(temporary, path, problem);
  if (out && !problem) return;
  const std::string why = problem ? problem.message() : std::strerror(errno);
  fs::remove(temporary, problem);
  refuse(path, why);
}

void require_writable(const std::string& path) {
  require_replaceable(path);
  const Uninterrupted alone;
  errno = 0;
  const std::string temporary = temporary_of(path);
  const bool opened = std::ofstream(temporary, std::ios::binary).is_open();
  const std::string why = std::strerror(errno);
  std::error_code ignored;
  fs::remove(temporary, ignored);
  if (!opened) refuse(path, why);
}

}  // namespace cosmati::tools
