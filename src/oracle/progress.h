// How far a run has come, as parts of parts of the whole: a loop says which of its turns it is in, and what is inside a turn says
// the same of itself. What is told never decreases.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>

namespace cosmati::oracle {

class Progress {
 public:
  explicit Progress(const std::function<void(double)>& tell) : tell_(tell) {}
  Progress(const Progress&) = delete;

  // While it lives, the whole is turn `index` of `count`; its end is told when it goes away.
  class Turn {
   public:
    Turn(Progress& owner, double index, double count) : owner_(owner), base_(owner.base_), share_(owner.share_) {
      owner.share_ = share_ / count;
      owner.base_ = base_ + index * owner.share_;
    }
    ~Turn() {
      const double end = owner_.base_ + owner_.share_;
      owner_.base_ = base_;
      owner_.share_ = share_;
      if (!owner_.tell_ || end < owner_.told_ + smallest_step) return;
      owner_.told_ = end;
      owner_.tell_(end);
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
};

}  // namespace cosmati::oracle
