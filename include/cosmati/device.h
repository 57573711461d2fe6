// Where programs run: devices, the streams that launches are put on, and memory of a device.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <cosmati/export.h>
#include <cosmati/tensor.h>

namespace cosmati {

// Runs task(0) .. task(tasks - 1), each once, in any order and on any threads, and returns when all have finished. Tasks do not
// throw and do not wait for each other. May be called by several threads at once. An exception of its own ends the launch.
using Executor = std::function<void(int tasks, const std::function<void(int)>& task)>;

class Stream;
class Buffer;

// A handle; copies are the same device. Thread-safe.
// cpu: compiled code. cuda: a GPU. sim: the kernel IR simulator. oracle: the meaning itself, in float64.
class COSMATI_API Device {
 public:
  static Device pick();  // as named(COSMATI_DEVICE) where that is set, else the CPU
  static Device named(
      const std::string& name);  // "cpu", "cuda", "cuda:1", "sim", "oracle"; throws Error{backend_absent, bad_argument}
  // A launch is cut into at most `threads` tasks at once (0: COSMATI_THREADS, else one for each core), which run on a pool that
  // the process shares, the calling thread included, or on the caller's executor. The floating-point control state of every
  // thread is left as it was. Every build has this device, and packages run on it; only a Function, which compiles for it, needs
  // LLVM. Throws Error{bad_argument} for a number of threads that is no such number.
  static Device cpu(int threads = 0);
  static Device cpu(Executor executor, int threads = 0);
  // A GPU of the CUDA driver. Arrays of a launch may lie in its memory, or in the host's: from there they are moved for the
  // launch and results moved back. Throws Error{backend_absent} where there is no driver, no NVRTC or no such device.
  static Device cuda(int index = 0);
  static Device sim();
  static Device oracle();

  const std::string& name() const;

  // The stream that launches without one use.
  Stream stream() const;
  // The caller's queue as a stream; nothing of it is owned. CPU: an executor in place of the device's own threads. A GPU: a
  // stream of its driver (a CUstream, null for the default one) of the device's primary context. Throws Error{bad_argument} for
  // the other kind.
  Stream adopt(Executor executor) const;
  Stream adopt(void* driver_stream) const;

  // Copies bytes between memory of the device and of the host, in any direction, and waits.
  void copy(void* to, const void* from, std::size_t bytes) const;

  // Memory of the device, aligned to 64 bytes, with any contents. Throws Error{bad_argument} where there is not as much.
  Buffer allocate(std::size_t bytes) const;

  struct COSMATI_HIDDEN Impl;
  const std::shared_ptr<Impl>& impl() const { return impl_; }

 private:
  explicit Device(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> impl_;
};

// Launches put on one stream run in that order. A handle; copies are the same stream. Thread-safe.
// A launch has finished when the call returns; on an adopted stream of a GPU it has when the stream has, if all its arrays are in
// the GPU's memory: until then they, and the launch, are in use.
class COSMATI_API Stream {
 public:
  void wait() const;  // returns when everything put on it has finished

  struct COSMATI_HIDDEN Impl;
  const std::shared_ptr<const Impl>& impl() const { return impl_; }

 private:
  friend class Device;
  explicit Stream(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

// Memory of a device, freed when the object dies: launches that use it must have finished. Moves, does not copy. Not
// synchronised: one thread at a time.
class COSMATI_API Buffer {
 public:
  Buffer(Buffer&&) noexcept = default;
  Buffer& operator=(Buffer&&) noexcept = default;

  void* data() const { return data_.get(); }
  std::size_t bytes() const { return bytes_; }
  // The array at its start. Throws Error{bad_argument} where it does not fit.
  TensorView view(DType dtype, std::vector<std::int64_t> shape, std::vector<std::int64_t> strides = {}) const;

 private:
  friend class Device;
  Buffer(std::unique_ptr<void, std::function<void(void*)>> data, std::size_t bytes) : data_(std::move(data)), bytes_(bytes) {}
  std::unique_ptr<void, std::function<void(void*)>> data_;
  std::size_t bytes_;
};

struct DeviceInfo {
  std::string name;
  bool present;        // a Function runs on it
  std::string detail;  // processor and vector width, or why it is absent
};
COSMATI_API std::vector<DeviceInfo> devices();

}  // namespace cosmati
