// Running programs: devices, functions and the judgement of results against the oracle.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <cosmati/export.h>
#include <cosmati/program.h>
#include <cosmati/tensor.h>
#include <cosmati/version.h>

namespace cosmati {

// A scalar argument keeps the form it was given in; it is converted to the parameter's dtype at launch (a value that does not
// fit is bad_argument).
using Argument = std::variant<TensorView, double, std::int64_t, bool>;
using Arguments = std::vector<std::pair<std::string, Argument>>;

// Where a function runs. cpu: compiled vector code on `threads` threads (0: all cores). sim: the kernel IR simulator. oracle: the
// meaning itself, in float64.
class COSMATI_API Device {
 public:
  static Device pick();                          // COSMATI_DEVICE, else the CPU
  static Device named(const std::string& name);  // "cpu", "sim", "oracle"; throws Error{backend_absent, bad_argument}
  static Device cpu(int threads = 0);
  static Device sim();
  static Device oracle();
  const std::string& name() const;
  struct COSMATI_HIDDEN Impl;
  const std::shared_ptr<Impl>& impl() const { return impl_; }

 private:
  explicit Device(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> impl_;
};

struct DeviceInfo {
  std::string name;
  bool present;
  std::string detail;  // processor and vector width, or why it is absent
};
COSMATI_API std::vector<DeviceInfo> devices();

struct Options {
  std::map<std::string, std::string> knobs;  // exact: an impossible value is an Error{bad_knob} naming the limit
  std::optional<std::string> plan;           // JSON of a plan to replay exactly, or refuse with the difference
};

// A program on a device. Thread-safe. Compiles once per (facts, plan), counted.
class COSMATI_API Function {
 public:
  Function(Program program, Device device, Options options = {});

  // Runs and waits. Outputs may be omitted from `arguments` only when allocate() made them. Checks every argument first (rank,
  // dtype, extents, aliasing, contracts on host data) and throws Error; nothing is written then.
  void operator()(const Arguments& arguments) const;

  // The shapes and dtypes of outputs that `arguments` do not name, in declared order; an extent nothing binds is an Error.
  struct OutputShape {
    std::string name;
    DType dtype;
    std::vector<std::int64_t> shape;
  };
  std::vector<OutputShape> missing_outputs(const Arguments& arguments) const;

  std::string plan(const Arguments& arguments) const;     // canonical JSON: program, target, knobs, domain, hash, mapping, ...
  std::string explain(const Arguments& arguments) const;  // the same for people
  std::string emit(const Arguments& arguments, const std::string& as) const;  // as: "tile", "kernel", "llvm", "asm"
  std::size_t compiles() const;

  struct COSMATI_HIDDEN Impl;

 private:
  std::shared_ptr<Impl> impl_;
};

// One output held against the oracle by the rule of the language: within the running error bound of the float64 oracle;
// integer, boolean and index results equal to the typed oracle where that is decidable.
struct Judgement {
  std::string output;
  double max_abs = 0, max_rel = 0;  // largest differences from the float64 reference
  double bound = 0;                 // the bound at the element of max_abs
  bool ok = true;
  std::vector<std::int64_t> at;  // the first element out of bounds
  double got = 0, expected = 0;  // there
  std::int64_t unjudged = 0;     // elements whose bound exceeds |ref|
};
// `before` are the arguments as they were before the run (an inout's old contents); `after` holds the outputs.
COSMATI_API std::vector<Judgement> judge(const Program& program, const Arguments& before, const Arguments& after);

// The contract of an integer tensor parameter at these arguments (only shapes, dtypes and scalars are read; data may be null):
// lo <= element < hi where bounded.
struct ContractBounds {
  std::optional<std::int64_t> lo, hi;
  bool sorted = false, distinct = false;
};
COSMATI_API ContractBounds contract_bounds(const Program& program, const Arguments& arguments, const std::string& parameter);

// The oracle's value for a name of the program (--probe), over its axes in the order of their declaration, as float64.
struct Probe {
  std::vector<std::string> axes;
  std::vector<std::int64_t> shape;
  std::vector<double> values;
};
COSMATI_API Probe probe(const Program& program, const Arguments& arguments, const std::string& name);

// The reference pages, printed from the tables (Markdown): "ops", "reducers", "dtypes", "errors", "knobs", "programs".
COSMATI_API std::map<std::string, std::string> reference_pages();

}  // namespace cosmati
