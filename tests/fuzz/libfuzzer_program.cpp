// libFuzzer: any bytes as program text. They parse, instantiate and print, or throw Error.
// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>

#include "language/source.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cosmati;
  try {
    for (const auto& source : language::parse(std::string(reinterpret_cast<const char*>(data), size), "fuzz.tile"))
      for (const language::Binding& binding : language::sample_bindings(source->signature())) {
        const std::string printed = language::print(source->instantiate(binding));
        if (language::print(language::parse(printed, "printed.tile").back()->instantiate({})) != printed) __builtin_trap();
      }
  } catch (const Error&) {
  }
  return 0;
}
