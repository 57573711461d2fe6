// Running programs: functions that compile, and the judgement of results against the oracle.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <cosmati/device.h>
#include <cosmati/export.h>
#include <cosmati/launch.h>
#include <cosmati/program.h>
#include <cosmati/tensor.h>
#include <cosmati/version.h>

namespace cosmati {

// What happens when a kernel is neither in memory nor in the disk cache. forbid: an Error{not_compiled} that names the facts,
// never a compilation.
enum class Jit : std::uint8_t { allow, forbid };

// A path, "" for no directory, or nothing said. (Not an optional string, which braces around two texts would make as well.)
class CacheDirectory {
 public:
  CacheDirectory() = default;
  template <std::convertible_to<std::string> Text>
  CacheDirectory(const Text& text) : text_(std::string(text)) {}
  const std::optional<std::string>& text() const { return text_; }

 private:
  std::optional<std::string> text_;
};

struct Options {
  // Directory of the disk cache; "" for none. Absent: COSMATI_CACHE_DIR (set and empty: none), else $XDG_CACHE_HOME/cosmati, else
  // $HOME/.cache/cosmati. Whatever is wrong with it costs one warning (set_log), never a launch.
  CacheDirectory cache = {};
  Jit jit = Jit::allow;
  std::map<std::string, std::string> knobs = {};  // exact: an impossible value is an Error{bad_knob} naming the limit
  std::optional<std::string> plan = {};           // JSON of a plan to replay exactly, or refuse with the difference
  // Bytes that the directory may hold, least recently used entries going first. 0: COSMATI_CACHE_LIMIT (bytes), else 256 MiB.
  std::int64_t cache_limit = 0;
};

// One step of warm().
struct WarmProgress {
  std::size_t done, total;  // argument sets
  std::string kernel;       // name of the kernel that is ready now
  bool compiled;            // false: it was in memory or in the disk cache
  double seconds;
};

// A program on a device, and the kernels made for it. A kernel is compiled once per (facts, plan), counted; different ones
// compile in parallel, and who asks for one that is being compiled waits for it. A handle; copies are the same function.
// Thread-safe.
class COSMATI_API Function {
 public:
  // Throws Error{backend_absent} for the CPU in a build without LLVM, which still runs packages (<cosmati/package.h>).
  Function(Program program, Device device, Options options = {});

  // Runs and waits. Every parameter without a default is among the arguments. Checks every argument first (rank, dtype, extents,
  // aliasing, contracts of data) and throws Error; nothing is written then.
  void operator()(const Arguments& arguments) const;
  void operator()(const Arguments& arguments, const Fraction& progress) const;
  // The arguments in declared order; scalars with defaults may be left out at the end.
  template <class... A>
    requires(sizeof...(A) > 0 && (std::convertible_to<A, Argument> && ...))
  void operator()(A&&... arguments) const {
    const Argument list[] = {Argument(std::forward<A>(arguments))...};
    const Argument* pointers[sizeof...(A)];
    for (std::size_t i = 0; i < sizeof...(A); ++i) pointers[i] = &list[i];
    call(pointers);
  }
  // The same for bindings: one pointer a parameter in declared order, null where it is left out.
  void call(std::span<const Argument* const> in_declared_order) const;
  // Put on a stream, as a Launch is. Scratch is taken and given back in the order of the stream.
  void call(std::span<const Argument* const> in_declared_order, const Stream& stream) const;

  // Checks as a call does and compiles if it must.
  Launch prepare(const Arguments& arguments) const;
  // The kernel of arguments like these: data may be null and outputs missing.
  Kernel kernel(const Arguments& arguments) const;
  // Compiles what the argument sets need (only shapes, dtypes, strides and scalars count: data may be null, outputs missing), on
  // `threads` threads (0: one for each core). `progress` is called by one thread at a time. All sets are tried; the first Error
  // is thrown then.
  void warm(const std::vector<Arguments>& sets, int threads = 0,
            const std::function<void(const WarmProgress&)>& progress = {}) const;

  // Writes the kernel of arguments like these as a package into `directory`, which must not exist or be empty: what
  // <cosmati/package.h> opens, and a header with the program as a typed C++ function. Compiles in any case, and links with the
  // system's C compiler. Throws Error{bad_file} where it cannot be written, backend_absent, bad_argument (devices other than
  // cpu).
  void package(const Arguments& arguments, const std::string& directory) const;

  // The shapes and dtypes of outputs that `arguments` do not name, in declared order. `extents` gives those of axes that no
  // argument binds, by name; an extent that nothing gives, or that is given otherwise, is an Error.
  struct OutputShape {
    std::string name;
    DType dtype;
    std::vector<std::int64_t> shape;
  };
  std::vector<OutputShape> missing_outputs(const Arguments& arguments, const Extents& extents = {}) const;
  std::vector<OutputShape> missing_outputs(std::span<const Argument* const> in_declared_order, const Extents& extents = {}) const;

  // The knobs that the program has at these arguments, and values worth trying: each is legal with the other knobs automatic
  // (some only with their axis on the lanes). automatic: what an absent knob means here, where that is one value.
  struct KnobChoices {
    std::string knob;
    std::vector<std::string> values;
    std::optional<std::string> automatic;
  };
  std::vector<KnobChoices> knobs(const Arguments& arguments) const;

  // None of these compiles.
  std::vector<std::string> facts(const Arguments& arguments) const;           // what a kernel would rely on, one a string
  std::string plan(const Arguments& arguments) const;                         // as Kernel::plan
  std::string explain(const Arguments& arguments) const;                      // as Kernel::explain
  std::string picture(const Arguments& arguments) const;                      // an SVG: which worker owns which element
  std::string emit(const Arguments& arguments, const std::string& as) const;  // as: "tile", "kernel", "llvm", "asm", "cuda"

  std::size_t compiles() const;  // compilations of this function so far: neither memory nor the disk cache had the kernel

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
  std::int64_t unjudged = 0;     // elements that differ from the reference and whose bound exceeds |ref|: ok says nothing of them
  std::int64_t elements = 0;
  // Whether `ok` says something of at least half of the elements.
  bool judged() const { return unjudged <= elements - unjudged; }
};
// `before` are the arguments as they were before the run (an inout's old contents); `after` holds the outputs. What `progress`
// throws ends the work.
COSMATI_API std::vector<Judgement> judge(const Program& program, const Arguments& before, const Arguments& after,
                                         const Fraction& progress = {});

// judge() in two steps: the oracle's results for some arguments, computed once, and any number of runs held against them.
// A handle; copies share the results. Immutable, thread-safe.
class COSMATI_API Judge {
 public:
  // Runs the oracle. `before`: as in judge(); outputs may be left out where the rest binds their extents, and the data of outs is
  // not read. Throws Error for arguments that a call would refuse, and where memory cannot hold the results. What `progress`
  // throws ends the work.
  Judge(const Program& program, const Arguments& before, const Fraction& progress = {});
  // `after` holds what some run wrote: every out and inout, in any order; what else it names is not looked at. Throws
  // Error{bad_argument, extent_mismatch} where one is missing, or is not of the type and shape that the program writes.
  std::vector<Judgement> operator()(const Arguments& after) const;
  // What it judges, in declared order.
  std::vector<Function::OutputShape> outputs() const;

  struct COSMATI_HIDDEN Impl;

 private:
  std::shared_ptr<const Impl> impl_;
};

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
COSMATI_API Probe probe(const Program& program, const Arguments& arguments, const std::string& name,
                        const Fraction& progress = {});

// The reference pages, printed from the tables (Markdown): "ops", "reducers", "dtypes", "errors", "knobs", "programs",
// "refusals".
COSMATI_API std::map<std::string, std::string> reference_pages();

}  // namespace cosmati
