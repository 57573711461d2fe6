// A block serves requests from a quarter of its size: small launches do not hold the memory of large ones.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/scratch.h"

#include <algorithm>
#include <new>
#include <utility>

#include "support/fork.h"

namespace cosmati::runtime {
namespace {

constexpr std::align_val_t alignment{memory_alignment};
constexpr std::size_t smallest = 4096;

}  // namespace

Scratch::Scratch(std::shared_ptr<ScratchPool> pool, std::size_t bytes) : pool_(std::move(pool)) {
  const ScratchPool::Block block = pool_->take(bytes);
  data_ = block.data;
  bytes_ = block.bytes;
}

Scratch::~Scratch() {
  if (data_) pool_->give({data_, bytes_});
}

Allocator host_memory() {
  return {[](std::size_t bytes) { return ::operator new(bytes, alignment); },
          [](void* data) { ::operator delete(data, alignment); }};
}

ScratchPool::ScratchPool(Allocator from) : from_(std::move(from)) { idle_.reserve(idle_blocks + 1); }

ScratchPool::~ScratchPool() {
  for (const Block& block : idle_) from_.free(block.data);
}

ScratchPool::Block ScratchPool::take(std::size_t bytes) {
  bytes = std::max(bytes, smallest);
  {
    std::lock_guard lock(support::short_mutex(this));
    for (std::size_t i = idle_.size(); i-- > 0;) {
      const Block block = idle_[i];
      if (block.bytes < bytes || block.bytes / 4 > bytes) continue;
      idle_.erase(idle_.begin() + static_cast<std::ptrdiff_t>(i));
      idle_bytes_ -= block.bytes;
      return block;
    }
  }
  return {from_.allocate(bytes), bytes};
}

void ScratchPool::give(Block block) noexcept {
  std::lock_guard lock(support::short_mutex(this));
  idle_.push_back(block);  // there is room
  idle_bytes_ += block.bytes;
  while (idle_bytes_ > idle_limit || idle_.size() > idle_blocks) {
    from_.free(idle_.front().data);
    idle_bytes_ -= idle_.front().bytes;
    idle_.erase(idle_.begin());
  }
}

}  // namespace cosmati::runtime
