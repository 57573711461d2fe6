// Opening a package: everything is held against everything else before a line of its code runs.
// SPDX-License-Identifier: Apache-2.0
#include <cosmati/package.h>

#include <fmt/format.h>

#include <filesystem>

#include "backends/native/features.h"
#include "backends/native/native.h"
#include "backends/native/shared_object.h"
#include "runtime/callable.h"
#include "runtime/manifest.h"
#include "support/hash.h"
#include "support/read_file.h"

namespace cosmati {
namespace {

namespace fs = std::filesystem;

// Whoever made a package has proven its program; that an output is an input is among its facts.
constexpr runtime::Proofs proven = {[](const ir::Program&) {}, [](const ir::Program&, ir::TensorId, ir::TensorId) {}};

[[noreturn]] void refuse(ErrorCode code, const std::string& path, const std::string& message, const std::string& hint) {
  throw Error(code, Where{path, 0, 0}, message, hint);
}

void require_this_machine(const runtime::Manifest& m, const std::string& path) {
  const std::string here = native::architecture();
  if (m.device != "cpu")
    refuse(ErrorCode::backend_absent, path, fmt::format("the package is for the device {}, which this library has not", m.device),
           "package the program for cpu");
  if (m.architecture != here)
    refuse(ErrorCode::backend_absent, path, fmt::format("the package is for {}, and this is {}", m.architecture, here),
           "package the program on a machine like this one");
  if (const auto missing = native::lacking(m.features))
    refuse(ErrorCode::backend_absent, path, fmt::format("the package uses {}, which this processor lacks", *missing),
           "package the program on a machine like this one");
}

// The program of a manifest, every dtype and rank fixed.
Program program_of(const runtime::Manifest& m, const std::string& directory, const std::string& path) {
  constexpr const char* hint = "package the program again";
  try {
    auto sources = language::parse(m.program, directory);
    const bool one = sources.size() == 1 && sources[0]->signature().name == m.image.name;
    if (one && sources[0]->signature().type_variables.empty()) return Program(sources[0]);
  } catch (const Error& e) {
    refuse(ErrorCode::bad_file, path, fmt::format("its field `program` is none: {}", e.message), hint);
  }
  refuse(ErrorCode::bad_file, path, fmt::format("its field `program` is not {} at fixed types", m.image.name), hint);
}

}  // namespace

struct Package::Impl : runtime::Callable {
  Impl(Program program, Device on) : Callable({std::move(program), proven}, std::move(on)) {}

  std::shared_ptr<const Kernel::Impl> kernel;
  std::string identity, directory;

 protected:
  std::shared_ptr<const Kernel::Impl> kernel_of(const runtime::Bound& bound, const plan::Facts& facts) override {
    if (const auto condition = runtime::outside_domain(*kernel, bound.instance->inlined, facts))
      throw Error(ErrorCode::bad_argument, {},
                  fmt::format("the package of {} is for arguments where {}", kernel->image.name, *condition),
                  "package the program for arguments like these");
    return kernel;
  }
};

Package Package::open(const std::string& directory, Device device) {
  if (device.impl()->kind != Device::Impl::Kind::cpu)
    throw Error(ErrorCode::bad_argument, {}, fmt::format("packages do not run on the device {}", device.name()),
                "open it on Device::cpu()");
  const fs::path folder = fs::absolute(directory);
  const std::string path = folder / runtime::manifest_name;
  std::error_code ignored;
  if (!fs::exists(path, ignored))
    refuse(ErrorCode::bad_file, directory, fmt::format("there is no package here: it has no {}", runtime::manifest_name),
           "name what `cosmati package` wrote");
  runtime::Manifest m = runtime::manifest_of(support::read_file(path), path);
  require_this_machine(m, path);
  auto impl = std::make_shared<Impl>(program_of(m, directory, path), std::move(device));
  std::shared_ptr<const runtime::Instance> instance;
  try {
    instance = impl->instances.get({});
  } catch (const Error& e) {
    refuse(ErrorCode::bad_file, path, fmt::format("its field `program` is none: {}", e.message), "package the program again");
  }
  impl->identity = runtime::identity(m, instance->program);
  impl->directory = directory;

  if (m.file != fs::path(m.file).filename().string() || m.file.empty())
    refuse(ErrorCode::bad_file, path, fmt::format("its code would be in {}, outside of the package", m.file),
           "package the program again");
  const std::string code = folder / m.file;
  if (support::hash128(support::read_file(code)) != m.hash)
    refuse(ErrorCode::bad_file, code, "it is damaged or of another package: its hash is not the manifest's",
           "package the program again");
  auto kernel = std::make_shared<Kernel::Impl>();
  kernel->facts = std::move(m.facts);
  kernel->image = std::move(m.image);
  kernel->executable = native::executable(kernel->image.interface, std::make_unique<const native::SharedObject>(code),
                                          runtime::symbol_prefix(impl->identity), impl->device.impl()->cpu);
  impl->kernel = std::move(kernel);
  return Package(std::move(impl));
}

namespace {

std::vector<const Argument*> pointers(std::span<const std::optional<Argument>> given) {
  std::vector<const Argument*> list;
  for (const std::optional<Argument>& argument : given) list.push_back(argument ? &*argument : nullptr);
  return list;
}

}  // namespace

// A call holds what it uses: the object may die meanwhile.
void Package::operator()(const Arguments& arguments) const {
  const std::shared_ptr<Impl> impl = impl_;
  impl->call_in_order(runtime::match(impl->signature(), arguments));
}

void Package::call(std::span<const std::optional<Argument>> in_declared_order) const {
  const std::shared_ptr<Impl> impl = impl_;
  impl->call_in_order(pointers(in_declared_order));
}

Launch Package::prepare(const Arguments& arguments) const {
  return runtime::make_launch(impl_, runtime::match(impl_->signature(), arguments));
}

Launch Package::prepare(std::span<const std::optional<Argument>> in_declared_order) const {
  return runtime::make_launch(impl_, pointers(in_declared_order));
}

Kernel Package::kernel() const { return Kernel(impl_->kernel); }
const std::string& Package::identity() const { return impl_->identity; }

const Package& Package::require(std::string_view identity) const {
  if (identity != impl_->identity)
    refuse(ErrorCode::bad_file, impl_->directory, "the generated header in use is of another package",
           "include the header that lies in the package that is opened");
  return *this;
}

}  // namespace cosmati
