// The devices there are, by name.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/device.h"

#include <fmt/format.h>

#include <cstdlib>

#include "backends/cpu/cpu.h"
#include "backends/registry.h"
#include "support/check.h"

namespace cosmati {

std::unique_ptr<kernel::Executable> Device::Impl::compile(const kernel::Kernel& k) const {
  if (kind == Kind::sim) return kernel::simulate(k);
  COSMATI_CHECK(kind == Kind::cpu, "the oracle compiles nothing");
  cpu::Options options;
  options.threads = threads;
  return cpu::compile(k, options);
}

Device Device::pick() {
  const char* wanted = std::getenv("COSMATI_DEVICE");
  if (wanted && *wanted) return named(wanted);
  return cpu();
}

Device Device::named(const std::string& name) {
  backends::require(name);
  if (name == "cpu") return cpu();
  if (name == "sim") return sim();
  return oracle();
}

Device Device::cpu(int threads) {
  backends::require("cpu");
  return Device(std::make_shared<Impl>(Impl{Impl::Kind::cpu, "cpu", threads}));
}
Device Device::sim() { return Device(std::make_shared<Impl>(Impl{Impl::Kind::sim, "sim", 0})); }
Device Device::oracle() { return Device(std::make_shared<Impl>(Impl{Impl::Kind::oracle, "oracle", 0})); }

const std::string& Device::name() const { return impl_->name; }

std::vector<DeviceInfo> devices() {
  std::vector<DeviceInfo> infos;
  for (const backends::Backend& b : backends::list()) infos.push_back({b.name, b.present, b.detail});
  return infos;
}

std::string version() { return COSMATI_VERSION; }

}  // namespace cosmati
