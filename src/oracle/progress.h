// How far a run has come, as parts of parts of the whole: a loop says which of its turns it is in, and what is inside a turn says
// the same of itself. What is told never decreases. Who is told may throw, which ends the run where its next turn begins.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <exception>
#include <functional>
#include <utility>

namespace cosmati::oracle {

class Progress {
 public:
  explicit Progress(const std::function<void(double)>& tell) : tell_(tell) {}
  Progress(const Progress&) = delete;

  // Throws what was thrown by who was told.
  void go_on() {
    if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
  }

  // While it lives, the whole is turn `index` of `count`; its end is told when it goes away.
  class Turn {
   public:
    Turn(Progress& owner, double index, double count) : owner_(owner), base_(owner.base_), share_(owner.share_) {
      owner.go_on();
      owner.share_ = share_ / count;
      owner.base_ = base_ + index * owner.share_;
    }
    ~Turn() {
      const double end = owner_.base_ + owner_.share_;
      owner_.base_ = base_;
      owner_.share_ = share_;
      if (!owner_.tell_ || end < owner_.told_ + smallest_step) return;
      owner_.told_ = end;
      try {
        owner_.tell_(end);
      } catch (...) {  // a destructor passes nothing on
        owner_.thrown_ = std::current_exception();
      }
    }
    Turn(const Turn&) = delete;

   private:
    static constexpr double smallest_step = 1e-3;
    Progress& owner_;
    const double base_, share_;
  };

 private:
  const std::function<void(double)>& tell_;
  double base_ = 0, share_ = 1, told_ = 0;
  std::exception_ptr thrown_;
};

}  // namespace cosmati::oracle
