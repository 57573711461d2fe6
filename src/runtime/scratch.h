// Working memory of launches: blocks of a device that go round instead of being allocated for each call.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

namespace cosmati::runtime {

constexpr std::size_t memory_alignment = 64;

class ScratchPool;

// A block that goes back to its pool when the object dies.
class Scratch {
 public:
  Scratch() = default;
  Scratch(std::shared_ptr<ScratchPool> pool, std::size_t bytes);  // throws std::bad_alloc
  Scratch(Scratch&& other) noexcept { swap(other); }
  Scratch& operator=(Scratch&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Scratch();
  void* data() const { return data_; }

 private:
  void swap(Scratch& other) noexcept {
    std::swap(pool_, other.pool_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
  }
  std::shared_ptr<ScratchPool> pool_;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

// Where blocks are from.
struct Allocator {
  std::function<void*(std::size_t bytes)> allocate;  // throws std::bad_alloc
  std::function<void(void*)> free;                   // never throws
};
Allocator host_memory();

// Idle blocks, up to a number and a sum of bytes; the longest idle are freed first. Thread-safe.
class ScratchPool {
 public:
  static constexpr std::size_t idle_limit = std::size_t{256} << 20, idle_blocks = 32;
  explicit ScratchPool(Allocator from = host_memory());
  ~ScratchPool();

 private:
  friend class Scratch;
  struct Block {
    void* data;
    std::size_t bytes;
  };
  Block take(std::size_t bytes);
  void give(Block block) noexcept;

  Allocator from_;
  std::vector<Block> idle_;  // oldest first
  std::size_t idle_bytes_ = 0;
};

}  // namespace cosmati::runtime
