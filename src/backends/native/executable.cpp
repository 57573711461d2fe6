// An executable: phases by their addresses, and how a launch is cut into tasks. Groups are independent, so the cut never changes
// a bit. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <vector>

#include <fmt/format.h>

#include "backends/native/float_state.h"
#include "backends/native/native.h"
#include "backends/native/pool.h"
#include "support/check.h"

namespace cosmati::native {
namespace {

constexpr double operations_per_task = 40'000;  // some ten microseconds: about what waking a thread costs
constexpr std::int64_t pieces_per_task = 4;     // tasks take groups in pieces, so that a slow one does not hold up the rest
constexpr std::int64_t pieces_told = 100;       // of a phase whose progress is told

struct Phase {
  PhaseFunction* run;
  SizeFunction* size;
};

struct Cut {  // of the groups of a phase
  std::int64_t groups = 0, piece = 0, pieces = 0;
  int tasks = 0;
};

Cut cut(const Phase& phase, const kernel::Launch& launch, int workers) {
  const DefaultFloatState state;  // what is estimated raises no flag of the caller's
  Size size;
  phase.size(launch.params.data(), &size);
  if (size.groups <= 0) return {};
  const double limit = static_cast<double>(std::min<std::int64_t>(size.groups, workers));
  const int tasks = static_cast<int>(std::max(1.0, std::min(limit, size.operations / operations_per_task)));
  std::int64_t cuts = tasks == 1 ? 1 : tasks * pieces_per_task;
  if (launch.progress) cuts = std::max(cuts, pieces_told);
  const std::int64_t piece = std::max<std::int64_t>(1, size.groups / cuts);
  return {size.groups, piece, (size.groups - 1) / piece + 1, tasks};
}

struct Work {  // one phase of one launch, taken by its tasks in pieces
  PhaseFunction* phase;
  const kernel::Launch& launch;
  const Cut cut;
  std::size_t index, phases;  // this phase among those of the kernel
  std::atomic<std::int64_t> next = 0, finished = 0;

  void take(int worker) {
    const DefaultFloatState state;
    for (std::int64_t at; (at = next.fetch_add(1, std::memory_order_relaxed)) < cut.pieces;) {
      phase(at * cut.piece, at + 1 == cut.pieces ? cut.groups : (at + 1) * cut.piece, worker, launch.buffers.data(),
            launch.params.data());
      if (launch.progress) tell(finished.fetch_add(1, std::memory_order_relaxed) + 1);
    }
  }
  void tell(std::int64_t done) const {
    launch.progress((static_cast<double>(index) + static_cast<double>(done) / static_cast<double>(cut.pieces)) /
                    static_cast<double>(phases));
  }
};

class Compiled : public kernel::Executable {
 public:
  Compiled(const kernel::Kernel& k, std::unique_ptr<const Code> code, const std::string& prefix, const Options& options)
      : code_(std::move(code)),
        workers_(native::workers(options)),
        executor_(options.executor),
        buffers_(k.buffers.size()),
        params_(k.params.size()) {
    for (std::size_t i = 0; i < k.phases.size(); ++i)
      phases_.push_back({reinterpret_cast<PhaseFunction*>(code_->address(phase_symbol(prefix, i))),
                         reinterpret_cast<SizeFunction*>(code_->address(size_symbol(prefix, i)))});
  }

  int workers() const override { return workers_; }

  using kernel::Executable::run;
  void run(const kernel::Launch& launch, const kernel::Queue* queue) const override {
    COSMATI_CHECK(launch.buffers.size() == buffers_ && launch.params.size() == params_,
                  "a launch of {} buffers and {} params for a kernel of {} and {}", launch.buffers.size(), launch.params.size(),
                  buffers_, params_);
    const Executor& executor = queue ? static_cast<const ExecutorQueue*>(queue)->executor : executor_;
    for (std::size_t i = 0; i < phases_.size(); ++i) run(i, launch, executor);
  }

 private:
  void run(std::size_t index, const kernel::Launch& launch, const Executor& executor) const {
    const Phase& phase = phases_[index];
    Work work{phase.run, launch, cut(phase, launch, workers_), index, phases_.size()};
    const int tasks = work.cut.tasks;
    if (tasks <= 1) return work.take(0);
    const std::function<void(int)> task = [&work](int worker) { work.take(worker); };
    if (executor)
      executor(tasks, task);
    else
      pool_run(tasks, task);
  }

  std::unique_ptr<const Code> code_;
  int workers_;
  Executor executor_;
  std::size_t buffers_, params_;
  std::vector<Phase> phases_;
};

}  // namespace

std::string phase_symbol(const std::string& prefix, std::size_t phase) { return fmt::format("{}_phase_{}", prefix, phase); }
std::string size_symbol(const std::string& prefix, std::size_t phase) { return fmt::format("{}_size_{}", prefix, phase); }

int workers(const Options& options) { return options.threads > 0 ? options.threads : pool_size(); }

std::unique_ptr<kernel::Executable> executable(const kernel::Kernel& k, std::unique_ptr<const Code> code,
                                               const std::string& prefix, const Options& options) {
  return std::make_unique<Compiled>(k, std::move(code), prefix, options);
}

}  // namespace cosmati::native
