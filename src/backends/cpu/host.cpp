// What the processor is called and how wide its vectors are, for people.
// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <fstream>
#include <string_view>

#include <fmt/format.h>

#include "backends/cpu/cpu.h"
#include "backends/cpu/machine.h"
#include "backends/cpu/pool.h"

namespace cosmati::cpu {
namespace {

struct VectorRow {
  std::string_view feature;
  int bits;
};
constexpr std::array<VectorRow, 4> vectors = {{{"+avx512f", 512}, {"+avx", 256}, {"+sse2", 128}, {"+neon", 128}}};

bool has(std::string_view features, std::string_view one) {
  for (std::size_t at = 0; (at = features.find(one, at)) != features.npos; at += one.size()) {
    const std::size_t end = at + one.size();
    if (end == features.size() || features[end] == ',') return true;
  }
  return false;
}

std::string processor() {
  std::ifstream facts("/proc/cpuinfo");
  for (std::string line; std::getline(facts, line);) {
    const std::size_t colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != line.npos) return line.substr(colon + 2);
  }
  return host_facts().cpu;
}

}  // namespace

std::string host_description() {
  std::string text = processor();
  for (const VectorRow& row : vectors)
    if (has(host_facts().features, row.feature)) {
      text += fmt::format(", {}-bit vectors", row.bits);
      break;
    }
  const int threads = pool_size();
  return text + fmt::format(", {} thread{}", threads, threads == 1 ? "" : "s");
}

std::optional<std::string> absent() { return std::nullopt; }

}  // namespace cosmati::cpu
