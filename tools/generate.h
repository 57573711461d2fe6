// Generated arrays: `f32[37,1537]:normal`. The same seed, name, type and shape give the same bits on every machine.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <cosmati/runtime.h>
#include <cosmati/tensor.h>

namespace cosmati::tools {

enum class Generator : std::uint8_t {
  normal,   // standard normal; floating types
  uniform,  // floats in 0 .. 1; every value of an integer type, bool
  zeros,
  ones,
  arange,  // 0, 1, 2, ... row-major, converted to the type
  index,   // uniform integers inside the parameter's contract, sorted or distinct where it says so
};
std::optional<Generator> generator_from_name(std::string_view name);
std::string generator_names();

// Fills a dense view. `name` separates the streams of different parameters; `contract` is read by `index` only.
void generate(const TensorView& view, Generator generator, std::uint64_t seed, const std::string& name,
              const std::optional<ContractBounds>& contract, const Fraction& progress = {});

}  // namespace cosmati::tools
