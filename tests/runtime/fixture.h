// What the tests of the runtime share: small programs, arrays, refusals, the messages that were logged.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cosmati/cosmati.h>

#include <gmock/gmock.h>

#include <mutex>
#include <numeric>

namespace cosmati::test {

inline Program program(const std::string& text) { return parse(text).front(); }

// y = 2 x over any strides.
inline const Program& doubled() {
  static const Program p = program("program doubled(in x: f32[i, j], out y: f32[i, j]) {\n parallel i, j { y[i, j] = x * 2 }\n}");
  return p;
}

inline bool has_cpu() {
  for (const DeviceInfo& d : devices())
    if (d.name == "cpu") return d.present;
  return false;
}

inline std::vector<Device> all_devices() {
  std::vector<Device> all;
  for (const DeviceInfo& d : devices())
    if (d.present) all.push_back(Device::named(d.name));
  return all;
}

// The devices that have kernels.
inline std::vector<Device> compiling_devices() {
  std::vector<Device> all = {Device::sim()};
  if (has_cpu()) all.push_back(Device::cpu());
  return all;
}

inline std::vector<float> counted(std::size_t size, float first = 0) {
  std::vector<float> v(size);
  std::iota(v.begin(), v.end(), first);
  return v;
}

// The message of the Error that `body` throws; its code must be this.
template <class Body>
std::string refusal(ErrorCode code, const Body& body) {
  try {
    body();
  } catch (const Error& e) {
    EXPECT_EQ(name(e.code), name(code)) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "nothing was refused";
  return "";
}

// Options without a disk cache: compilations are counted from nothing.
inline Options uncached() { return {.cache = ""}; }

// The messages that the library logs while this lives.
class Logged {
 public:
  Logged() {
    set_log([this](LogLevel level, const std::string& message) {
      std::lock_guard lock(mutex_);
      (level == LogLevel::warning ? warnings_ : infos_).push_back(message);
    });
  }
  ~Logged() { set_log({}); }
  Logged(const Logged&) = delete;
  Logged& operator=(const Logged&) = delete;
  std::vector<std::string> warnings() const {
    std::lock_guard lock(mutex_);
    return warnings_;
  }
  std::vector<std::string> infos() const {
    std::lock_guard lock(mutex_);
    return infos_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> warnings_, infos_;
};

}  // namespace cosmati::test
