// Writing a package: made in a folder of its own beside the place where it will be, opened there once, and renamed.
// SPDX-License-Identifier: Apache-2.0
#include <cosmati/package.h>

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "backends/native/features.h"
#include "backends/registry.h"
#include "library/function.h"
#include "library/kernel_image.h"
#include "library/link.h"
#include "library/package_header.h"
#include "library/proofs.h"
#include "runtime/manifest.h"
#include "support/deep_stack.h"
#include "support/hash.h"
#include "support/read_file.h"

namespace cosmati {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const fs::path& path, const std::string& why, const std::string& hint = {}) {
  throw Error(ErrorCode::bad_file, Where{path, 0, 0}, "the package cannot be written: " + why, hint);
}

void require_free(const fs::path& directory) {
  std::error_code problem;
  const fs::file_status status = fs::status(directory, problem);
  if (!fs::exists(status)) return;
  // A new folder takes its place, which whoever stands in it would not see.
  if (fs::equivalent(directory, fs::current_path(problem), problem) && !problem)
    refuse(directory, "it is the current folder", "name a folder in it");
  if (fs::is_directory(status) && fs::is_empty(directory, problem) && !problem) return;
  refuse(directory, problem ? problem.message() : "there is something already", "name a folder that does not exist or is empty");
}

// What a package relies on is what its arguments will always have, not what they happen to have: of each tensor the last
// dimension of stride 1. Others may have one element now and more later.
plan::Facts lasting(plan::Facts facts, const std::vector<TensorView>& tensors) {
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    bool found = false;
    for (std::size_t d = tensors[t].strides.size(); d-- > 0;) {
      facts.unit_stride[t][d] = !found && tensors[t].strides[d] == 1;
      found = found || facts.unit_stride[t][d];
    }
  }
  return facts;
}

// A folder that is gone when the object dies, unless it was renamed.
class Folder {
 public:
  explicit Folder(const fs::path& beside) {
    std::error_code problem;
    for (int n = 0;; ++n) {
      path_ = fmt::format("{}.{}.{}.tmp", beside.string(), ::getpid(), n);
      if (fs::create_directory(path_, problem)) return;
      if (problem) refuse(beside, problem.message(), "name a folder in one that exists and may be written");
    }
  }
  ~Folder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const fs::path& path() const { return path_; }

  void write(const std::string& name, const std::string& bytes) const {
    errno = 0;
    std::ofstream out(path_ / name, std::ios::binary);
    out << bytes;
    out.close();
    if (!out) refuse(path_ / name, std::strerror(errno));
  }
  void rename(const fs::path& to) {
    std::error_code problem;
    if (const fs::file_status status = fs::status(to, problem); fs::exists(status))
      fs::permissions(path_, status.permissions(), problem);
    fs::rename(path_, to, problem);
    if (problem) refuse(to, problem.message(), "name a folder that does not exist or is empty");
    path_.clear();
  }

 private:
  fs::path path_;
};

}  // namespace

void Function::package(const Arguments& arguments, const std::string& directory) const {
  const std::shared_ptr<Impl> impl = impl_;
  if (impl->device.impl()->kind != Device::Impl::Kind::cpu)
    throw Error(ErrorCode::bad_argument, {}, fmt::format("programs are not packaged for the device {}", impl->device.name()),
                "package it for cpu");
  std::error_code problem;
  fs::path to = fs::absolute(directory, problem).lexically_normal();
  if (problem) refuse(directory, problem.message(), "name a folder by its whole path");
  if (!to.has_filename()) to = to.parent_path();
  require_free(to);

  // The program as whoever opens the package will read it.
  const auto [bound, found, shape] = impl->sketch(runtime::match(impl->signature(), arguments));
  const plan::Facts facts = lasting(found, bound.inputs.tensors);
  runtime::Manifest m;
  m.program = language::print(bound.instance->program);
  const auto source = language::parse(m.program, directory).at(0);
  const auto instance = runtime::Instances(Program(source), library::proofs()).get({});

  library::Kernels kernels(impl->device, impl->options);  // its own: plans name axes by their numbers in this reading
  const plan::Plan plan = kernels.planned(*instance, facts, shape);
  const kernel::Kernel k = kernels.lowered(*instance, plan);
  const kernel::Kernel expanded = support::on_deep_stack([&] {
    kernel::Kernel e = kernel::expand(k, cpu::native());
    kernel::verify(e, "expand");
    return e;
  });
  m.device = impl->device.name();
  m.architecture = native::architecture();
  m.features = native::features();
  m.facts = facts;
  m.image = {instance->program.name, plan::to_json(instance->inlined, plan), plan::to_text(instance->inlined, plan),
             plan::domain(instance->inlined, plan), library::interface_of(k)};
  const std::string identity = runtime::identity(m, instance->program);
  const cpu::Object object =
      support::on_deep_stack([&] { return cpu::compile_portable(expanded, runtime::symbol_prefix(identity), m.features); });

  Folder folder(to);
  folder.write("code.o", object.bytes);
  m.file = fmt::format("{}.{}.so", m.image.name, identity.substr(0, 8));
  library::link_shared(folder.path() / "code.o", folder.path() / m.file);
  fs::remove(folder.path() / "code.o");
  m.hash = support::hash128(support::read_file(folder.path() / m.file));
  folder.write(m.image.name + ".h", library::package_header(m, source->signature(), identity));
  folder.write(runtime::manifest_name, runtime::to_json(m));
  Package::open(folder.path(), impl->device);
  folder.rename(to);
}

}  // namespace cosmati
