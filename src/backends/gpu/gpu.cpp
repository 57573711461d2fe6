// Arrays in the host's memory are moved in blocks: views that share memory share their block.
// SPDX-License-Identifier: Apache-2.0
#include "backends/gpu/gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <new>
#include <optional>
#include <utility>

#include <cosmati/error.h>

#include "backends/gpu/driver.h"

namespace cosmati::gpu {
namespace {

// Numbers of the driver's interface.
constexpr int compute_capability_major = 75, compute_capability_minor = 76, memory_type = 2;
constexpr int most_chip_bytes_of_block = 97, chip_bytes_of_function = 1, most_given_chip_bytes = 8;
constexpr int type_of_device = 2;

constexpr unsigned block_threads = 64;
constexpr std::int64_t most_workers = 16'384;          // that have scratch of their own
constexpr std::int64_t most_groups_of_threads = 4096;  // the same where a worker is several threads
constexpr std::int64_t most_blocks = 1 << 30;
constexpr std::int64_t most_threads = 1 << 22;  // of one launch; each takes several groups where there are more

class Current {  // makes a context current for a while
 public:
  explicit Current(Context context) { require(driver().push_context(context), "making a context current"); }
  ~Current() {
    Context ignored = nullptr;
    driver().pop_context(&ignored);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;
};

std::pair<int, int> compute_capability(DeviceNumber device) {
  std::pair<int, int> version;
  require(driver().device_attribute(&version.first, compute_capability_major, device), "asking a device");
  require(driver().device_attribute(&version.second, compute_capability_minor, device), "asking a device");
  return version;
}

// The arrays of one launch that lie in the host's memory, in blocks of the device's.
class Moved {
 public:
  explicit Moved(const Gpu& gpu) : gpu_(gpu) {}
  ~Moved() {
    for (const Block& block : blocks_) gpu_.free(block.memory);
  }
  Moved(const Moved&) = delete;
  Moved& operator=(const Moved&) = delete;

  void add(char* begin, char* end, bool written) {
    if (begin == end) return;
    Block block{begin, end, written};
    // Those that it touches become one with it.
    for (auto other = blocks_.begin(); other != blocks_.end();) {
      if (other->end <= block.begin || block.end <= other->begin) {
        ++other;
        continue;
      }
      block = {std::min(block.begin, other->begin), std::max(block.end, other->end), block.written || other->written};
      other = blocks_.erase(other);
    }
    blocks_.push_back(block);
  }
  void there() {
    for (Block& block : blocks_) {
      // It begins as far from an aligned address as here: launches rely on that of their arrays.
      const auto bytes = static_cast<std::size_t>(block.end - block.begin);
      const std::size_t before = reinterpret_cast<std::uintptr_t>(block.begin) % kernel::aligned_bytes;
      block.memory = gpu_.allocate(bytes + before);
      block.there = static_cast<char*>(block.memory) + before;
      gpu_.copy(block.there, block.begin, bytes);
    }
  }
  bool empty() const { return blocks_.empty(); }
  // Where an address of the host is on the device.
  char* at(char* here) const {
    for (const Block& block : blocks_)
      if (block.begin <= here && here < block.end) return block.there + (here - block.begin);
    return here;
  }
  void back() const {
    for (const Block& block : blocks_)
      if (block.written) gpu_.copy(block.begin, block.there, static_cast<std::size_t>(block.end - block.begin));
  }

 private:
  struct Block {
    char *begin, *end;
    bool written;
    char* there = nullptr;
    void* memory = nullptr;
  };
  const Gpu& gpu_;
  std::vector<Block> blocks_;
};

// What kind of memory the driver takes it for; nothing: ordinary memory of the host.
std::optional<int> type_of(const void* memory) {
  int type = 0;
  if (driver().pointer_attribute(&type, memory_type, reinterpret_cast<Address>(memory)) != 0) return std::nullopt;
  return type;
}

class Compiled : public kernel::Executable {
 public:
  Compiled(const kernel::Kernel& k, std::shared_ptr<const Gpu> gpu, DeviceNumber device, Context context, Gpu::Code code)
      : k_(k), gpu_(std::move(gpu)), context_(context), code_(std::move(code)) {
    const Current current(context_);
    require(driver().load_module(&module_, code_.image.data()), "loading code");
    require(driver().device_attribute(&most_chip_bytes_, most_chip_bytes_of_block, device), "asking a device");
    functions_.resize(code_.functions.size());
    room_.resize(functions_.size());
    for (std::size_t i = 0; i < functions_.size(); ++i) {
      require(driver().function(&functions_[i], module_, code_.functions[i].c_str()), "finding a function");
      if (code_.threads[i] == 0) continue;
      int fixed = 0;
      require(driver().function_attribute(&fixed, chip_bytes_of_function, functions_[i]), "asking a function");
      room_[i] = most_chip_bytes_ - fixed;
      require(driver().set_function_attribute(functions_[i], most_given_chip_bytes, room_[i]), "setting up a function");
    }
    has_worker_scratch_ = std::any_of(k_.buffers.begin(), k_.buffers.end(),
                                      [](const kernel::Buffer& b) { return b.kind == kernel::Buffer::Kind::worker_scratch; });
  }
  ~Compiled() override {
    if (driver().push_context(context_) != 0) return;
    driver().unload_module(module_);
    Context ignored = nullptr;
    driver().pop_context(&ignored);
  }
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;

  int workers() const override {
    const bool each = std::any_of(code_.threads.begin(), code_.threads.end(), [](int n) { return n == 0; });
    return each ? most_workers : most_groups_of_threads;
  }

  using kernel::Executable::run;
  void run(const kernel::Launch& launch, const kernel::Queue* queue) const override {
    const auto* adopted = static_cast<const StreamQueue*>(queue);
    const auto stream = static_cast<StreamHandle>(adopted ? adopted->stream : nullptr);
    const Current current(context_);
    Moved moved(*gpu_);
    std::vector<bool> of_host(launch.buffers.size(), false);
    const auto bounds = [&](std::size_t i) {
      const kernel::Memory& m = launch.buffers[i];
      const std::int64_t size = byte_size(k_.buffers[i].dtype);
      return std::pair(static_cast<char*>(m.data) + m.lo * size, static_cast<char*>(m.data) + m.hi * size);
    };
    for (std::size_t i = 0; i < launch.buffers.size(); ++i) {
      const kernel::Buffer& b = k_.buffers[i];
      const auto [begin, end] = bounds(i);
      of_host[i] = b.kind == kernel::Buffer::Kind::argument && begin != end && !type_of(begin);
      if (of_host[i]) moved.add(begin, end, b.access != kernel::Buffer::Access::read);
    }
    moved.there();
    std::vector<void*> buffers;
    for (std::size_t i = 0; i < launch.buffers.size(); ++i) {
      const auto [begin, end] = bounds(i);
      auto* data = static_cast<char*>(launch.buffers[i].data);
      buffers.push_back(of_host[i] ? moved.at(begin) + (data - begin) : data);
    }
    for (std::size_t i = 0; i < functions_.size(); ++i) run(i, launch, buffers, stream);
    if (adopted && moved.empty()) return;
    require(driver().synchronize(stream), "running a kernel");
    moved.back();
  }

 private:
  void run(std::size_t phase, const kernel::Launch& launch, std::vector<void*>& buffers, StreamHandle stream) const {
    std::int64_t groups = kernel::evaluate(k_, k_.phases[phase].groups, launch.params);
    if (groups <= 0) return;
    // Integers and floats alike begin where their 64 bits do.
    std::vector<std::int64_t> params = launch.params;
    std::vector<void*> arguments;
    for (std::int64_t& param : params) arguments.push_back(&param);
    arguments.push_back(&groups);
    bool in_chip = false;
    arguments.push_back(&in_chip);
    for (void*& buffer : buffers) arguments.push_back(&buffer);
    const int threads = code_.threads[phase];
    std::int64_t workers_of_block = block_threads, chip = 0, most = has_worker_scratch_ ? most_workers : most_threads;
    if (threads > 0) {
      workers_of_block = threads / k_.phases[phase].lanes;
      chip = code_.chip_bytes(launch.params) * workers_of_block;
      in_chip = chip <= room_[phase];
      if (!in_chip) chip = 0;
      most = has_worker_scratch_ && !in_chip ? most_groups_of_threads : most_blocks;
    }
    const auto blocks = static_cast<unsigned>(
        std::min((groups + workers_of_block - 1) / workers_of_block, std::max<std::int64_t>(1, most / workers_of_block)));
    require(driver().launch(functions_[phase], blocks, 1, 1, threads > 0 ? static_cast<unsigned>(threads) : block_threads, 1, 1,
                            static_cast<unsigned>(chip), stream, arguments.data(), nullptr),
            "starting a kernel");
  }

  kernel::Kernel k_;
  std::shared_ptr<const Gpu> gpu_;
  Context context_;
  Gpu::Code code_;
  Module module_ = nullptr;
  std::vector<Function> functions_;
  int most_chip_bytes_ = 0;  // of a block
  std::vector<int> room_;    // of that, what a launch may give each function
  bool has_worker_scratch_ = false;
};

}  // namespace

struct Gpu::State {
  int index = 0;
  DeviceNumber device = 0;
  Context context = nullptr;
  std::string architecture;
};

std::string description() {
  DeviceNumber device = 0;
  std::array<char, 256> name = {};
  require(driver().device(&device, 0), "finding a device");
  require(driver().device_name(name.data(), name.size(), device), "naming a device");
  const auto [major, minor] = compute_capability(device);
  return fmt::format("{}, compute capability {}.{}", name.data(), major, minor);
}

Gpu::Gpu(std::unique_ptr<const State> state) : state_(std::move(state)) {}
Gpu::~Gpu() { driver().release_context(state_->device); }

std::shared_ptr<const Gpu> Gpu::at(int index) {
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorCode::backend_absent, {}, fmt::format("the device cuda:{} is not available: {}", index, why),
                "run on cpu, sim or oracle");
  };
  if (const auto why = absent()) refuse(*why);
  auto state = std::make_unique<State>();
  state->index = index;
  if (driver().device(&state->device, index) != 0) refuse("the CUDA driver has no such device");
  const auto [major, minor] = compute_capability(state->device);
  state->architecture = fmt::format("sm_{}{}", major, minor);
  require(driver().retain_context(&state->context, state->device), "opening a device");
  return std::shared_ptr<const Gpu>(new Gpu(std::move(state)));
}

int Gpu::index() const { return state_->index; }
const std::string& Gpu::architecture() const { return state_->architecture; }

void* Gpu::allocate(std::size_t bytes, const StreamQueue* stream) const {
  const Current current(state_->context);
  Address address = 0;
  bytes = std::max<std::size_t>(bytes, 1);
  const Result result = stream ? driver().allocate_on(&address, bytes, static_cast<StreamHandle>(stream->stream))
                               : driver().allocate(&address, bytes);
  if (result != 0) throw std::bad_alloc();
  return reinterpret_cast<void*>(address);
}

void Gpu::free(void* memory, const StreamQueue* stream) const noexcept {
  if (!memory || driver().push_context(state_->context) != 0) return;
  const auto address = reinterpret_cast<Address>(memory);
  if (stream)
    driver().free_on(address, static_cast<StreamHandle>(stream->stream));
  else
    driver().free(address);
  Context ignored = nullptr;
  driver().pop_context(&ignored);
}

bool Gpu::holds(const void* memory) const {
  const Current current(state_->context);
  return memory && type_of(memory) == type_of_device;
}

void Gpu::copy(void* to, const void* from, std::size_t bytes) const {
  const Current current(state_->context);
  require(driver().copy(reinterpret_cast<Address>(to), reinterpret_cast<Address>(from), bytes), "moving an array");
  require(driver().synchronize(nullptr), "moving an array");  // what is on the way to the device when the driver returns
}

void Gpu::wait(const StreamQueue& stream) const {
  const Current current(state_->context);
  require(driver().synchronize(static_cast<StreamHandle>(stream.stream)), "waiting for a stream");
}

std::unique_ptr<kernel::Executable> Gpu::load(const kernel::Kernel& k, Code code) const {
  return std::make_unique<Compiled>(k, shared_from_this(), state_->device, state_->context, std::move(code));
}

}  // namespace cosmati::gpu
