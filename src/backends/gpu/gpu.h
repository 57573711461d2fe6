// A GPU: its memory, and compiled code that runs on it.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernel/kernel.h"
#include "kernel/launch.h"

namespace cosmati::gpu {

// The processor with its compute capability. The driver is present.
std::string description();

// A stream of the driver, of which nothing is owned.
class StreamQueue : public kernel::Queue {
 public:
  explicit StreamQueue(void* stream) : stream(stream) {}
  void* const stream;
};

// A device whose context is held as long as this lives. Thread-safe; the context that is current where it is called stays so.
class Gpu : public std::enable_shared_from_this<Gpu> {
 public:
  static std::shared_ptr<const Gpu> at(int index);  // throws Error{backend_absent}
  ~Gpu();

  int index() const;
  // What code is compiled for, like sm_90.
  const std::string& architecture() const;

  // Memory of the device; with a stream in the order of its work: what is freed there serves again behind it. Throws
  // std::bad_alloc.
  void* allocate(std::size_t bytes, const StreamQueue* stream = nullptr) const;
  void free(void* memory, const StreamQueue* stream = nullptr) const noexcept;
  bool holds(const void* memory) const;                            // whether it is memory of a device, which the host cannot read
  void copy(void* to, const void* from, std::size_t bytes) const;  // between it and the host, in any direction
  void wait(const StreamQueue& stream) const;

  struct Code {
    std::string image;
    std::vector<std::string> functions;  // one a phase. Parameters: the kernel's params, the number of groups, whether the
                                         // scratch of workers is on the chip, the kernel's buffers
    std::vector<int> threads;            // of a block of each; 0: any number, each is a worker
    std::function<std::int64_t(const std::vector<std::int64_t>& params)> chip_bytes;  // a worker's, where its scratch is there
  };
  // Arrays of a launch may lie in the device's memory or in the host's, from where they are moved and to where results come back.
  // On a StreamQueue it returns when the launch is on the stream, if all arrays are the device's.
  std::unique_ptr<kernel::Executable> load(const kernel::Kernel& k, Code code) const;

 private:
  struct State;
  explicit Gpu(std::unique_ptr<const State> state);
  std::unique_ptr<const State> state_;
};

}  // namespace cosmati::gpu
