// The simulator: executes kernel IR group after group, with the bits of ops::reference, and judges every access. It throws
// InternalError on an access outside a buffer, a read of scratch that the group (worker scratch) or the launch (launch scratch)
// has not written, and on groups of one phase that meet at an element which one of them writes, or lanes that go apart and meet
// at one between two fences. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cfenv>
#include <cmath>
#include <cstring>
#include <limits>

#include <cosmati/error.h>
#include <fmt/format.h>

#include "kernel/bytecode.h"
#include "kernel/launch.h"
#include "kernel/shadow.h"
#include "support/check.h"

namespace cosmati::kernel {

using ops::Op;
using ops::Scalar;

namespace {

constexpr int worker_count = 2;  // two, so that a value left in the scratch of another worker shows
constexpr int poison = 0xff;     // NaN in every float type

// The caller's rounding and subnormal modes do not reach the arithmetic, and are back afterwards.
class DefaultFloats {
 public:
  DefaultFloats() {
    std::fegetenv(&saved_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultFloats() { std::fesetenv(&saved_); }
  DefaultFloats(const DefaultFloats&) = delete;
  DefaultFloats& operator=(const DefaultFloats&) = delete;

 private:
  std::fenv_t saved_;
};

template <class F>
F larger(F a, F b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) ? a : b;
  return a < b || (a == b && std::signbit(a)) ? b : a;
}
template <class F>
F smaller(F a, F b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) ? a : b;
  return b < a || (a == b && std::signbit(b)) ? b : a;
}
std::uint64_t u(std::int64_t a) { return static_cast<std::uint64_t>(a); }

// The C types of the columns of fast operations, and their values in slots.
using f32 = float;
using f64 = double;
using i64 = std::int64_t;
using i32 = std::int32_t;
using u32 = std::uint32_t;
template <class T>
T get(std::uint64_t slot) {
  if constexpr (std::is_same_v<T, f32>)
    return std::bit_cast<f32>(static_cast<std::uint32_t>(slot));
  else if constexpr (std::is_same_v<T, f64>)
    return std::bit_cast<f64>(slot);
  else
    return static_cast<T>(slot);
}
template <class T>
std::uint64_t put(T value) {
  if constexpr (std::is_same_v<T, f32>)
    return std::bit_cast<std::uint32_t>(value);
  else if constexpr (std::is_same_v<T, f64>)
    return std::bit_cast<std::uint64_t>(value);
  else
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
}

std::uint64_t read_bits(const unsigned char* p, int bytes) {
  const auto as = [&](auto value) {
    std::memcpy(&value, p, sizeof value);
    return static_cast<std::uint64_t>(value);
  };
  switch (bytes) {
    case 1:
      return *p;
    case 2:
      return as(std::uint16_t{});
    case 4:
      return as(std::uint32_t{});
    default:
      return as(std::uint64_t{});
  }
}

void write_bits(unsigned char* p, int bytes, std::uint64_t bits) {
  const auto as = [&](auto value) { std::memcpy(p, &value, sizeof value); };
  switch (bytes) {
    case 1:
      return as(static_cast<std::uint8_t>(bits));
    case 2:
      return as(static_cast<std::uint16_t>(bits));
    case 4:
      return as(static_cast<std::uint32_t>(bits));
    default:
      return as(bits);
  }
}

std::uint64_t convert(DType from, DType to, std::uint64_t slot) {
  if (from == DType::i32_ && to == DType::f32_) return put(static_cast<f32>(get<i32>(slot)));
  if (from == DType::f32_ && to == DType::f64_) return put(static_cast<f64>(get<f32>(slot)));
  if (from == DType::f64_ && to == DType::f32_) return put(static_cast<f32>(get<f64>(slot)));
  if (is_int(from) && is_int(to)) return slot_of_bits(to, slot);
  return slot_of_scalar(to, ops::cast(from, to, scalar_of_slot(from, slot)));
}

// One buffer of one launch.
struct Bound {
  const Buffer* buffer;
  unsigned char* base;  // element 0: of the argument, of the scratch, or of the worker's piece
  std::int64_t lo, hi;
  int bytes;
  std::shared_ptr<Shadow> shadow;  // none where nothing can go wrong but the bounds: arguments that no buffer writes
  std::shared_ptr<Watched<ByLanes>> lanes = nullptr;  // where lanes go apart
};

class Run {
 public:
  Run(const Kernel& k, const Bytecode& code, const Launch& launch) : k_(k), code_(code), launch_(launch), slots_(code.slots) {
    COSMATI_CHECK(launch.buffers.size() == k.buffers.size() && launch.params.size() == k.params.size(),
                  "kernel {}: a launch of {} buffers and {} params for {} and {}", k.name, launch.buffers.size(),
                  launch.params.size(), k.buffers.size(), k.params.size());
    for (const auto& [slot, value] : code.constants) slots_[slot] = value;
    for (std::size_t i = 0; i < k.params.size(); ++i)
      slots_[code.first_param + i] = slot_of_bits(k.params[i].dtype, u(launch.params[i]));
    for (std::size_t i = 0; i < k.buffers.size(); ++i) bind(k.buffers[i], launch.buffers[i]);
    watch_arguments();
  }

  void run() {
    for (std::size_t p = 0; p < k_.phases.size(); ++p) {
      phase_ = &k_.phases[p];
      const std::int64_t groups = evaluate(k_, phase_->groups, launch_.params);
      COSMATI_CHECK(groups < std::numeric_limits<std::uint32_t>::max() - stamp_,
                    "kernel {}, phase {}: {} groups are too many to simulate", k_.name, phase_->name, groups);
      phase_stamp_ = stamp_ + 1;
      for (std::int64_t g = 0; g < groups; ++g) {
        start_group(g);
        execute(code_.phases[p].data(), code_.phases[p].size());
        if (launch_.progress)
          launch_.progress((static_cast<double>(p) + static_cast<double>(g + 1) / static_cast<double>(groups)) /
                           static_cast<double>(k_.phases.size()));
      }
    }
  }

 private:
  void bind(const Buffer& b, const Memory& m) {
    Bound bound{&b, static_cast<unsigned char*>(m.data), m.lo, m.hi, byte_size(b.dtype), nullptr};
    if (b.kind != Buffer::Kind::argument) {
      bound.lo = 0;
      bound.hi = std::max<std::int64_t>(0, evaluate(k_, b.elements, launch_.params));
      COSMATI_CHECK(bound.hi == 0 || m.data, "kernel {}: scratch {} has no memory", k_.name, b.name);
      const int pieces = b.kind == Buffer::Kind::worker_scratch ? worker_count : 1;
      if (bound.hi > 0)
        std::memset(m.data, poison, static_cast<std::size_t>(bound.hi) * static_cast<std::size_t>(bound.bytes * pieces));
      watch(bound, 0, bound.hi);
    }
    buffers_.push_back(std::move(bound));
  }

  void watch(Bound& b, std::int64_t lo, std::int64_t hi) const {
    b.shadow = std::make_shared<Shadow>(lo, hi);
    if (std::any_of(k_.phases.begin(), k_.phases.end(), [](const Phase& p) { return p.apart; }))
      b.lanes = std::make_shared<Watched<ByLanes>>(lo, hi);
  }

  // Arguments at one address are one memory (an out may be an exact alias of an in), watched together when one is written.
  void watch_arguments() {
    for (const Bound& written : buffers_) {
      if (written.buffer->kind != Buffer::Kind::argument || written.buffer->access == Buffer::Access::read || written.shadow)
        continue;
      const auto shares = [&](const Bound& b) {
        return b.buffer->kind == Buffer::Kind::argument && b.base == written.base && b.bytes == written.bytes;
      };
      std::int64_t lo = written.lo, hi = written.hi;
      for (const Bound& b : buffers_)
        if (shares(b)) lo = std::min(lo, b.lo), hi = std::max(hi, b.hi);
      Bound watched = written;
      watch(watched, lo, hi);
      for (Bound& b : buffers_)
        if (shares(b)) b.shadow = watched.shadow, b.lanes = watched.lanes;
    }
  }

  void start_group(std::int64_t g) {
    const std::int64_t worker = g % worker_count;
    slots_[group_slot] = u(g);
    slots_[worker_slot] = u(worker);
    ++stamp_;
    ++fences_;
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      Bound& b = buffers_[i];
      if (b.buffer->kind != Buffer::Kind::worker_scratch || b.hi == 0) continue;
      const std::int64_t piece = b.hi * b.bytes;
      b.base = static_cast<unsigned char*>(launch_.buffers[i].data) + worker * piece;
      std::memset(b.base, poison, static_cast<std::size_t>(piece));
    }
  }

  [[noreturn]] void fault(const Bound& b, std::int64_t offset, const std::string& what) const {
    throw InternalError(fmt::format("simulator: kernel {}, phase {}, group {}: {} {}[{}] {}", k_.name, phase_->name,
                                    slots_[group_slot], b.buffer->kind == Buffer::Kind::argument ? "argument" : "scratch",
                                    b.buffer->name, offset, what));
  }

  // The group that a stamp of this phase belongs to.
  std::uint32_t group_of(std::uint32_t stamp) const { return stamp - phase_stamp_; }

  unsigned char* element(const Bound& b, std::int64_t offset, const char* access) const {
    if (offset < b.lo || offset >= b.hi) fault(b, offset, fmt::format("is {} outside its range {} .. {}", access, b.lo, b.hi));
    return b.base + offset * b.bytes;
  }

  std::uint64_t load(std::uint32_t buffer, std::int64_t offset) {
    const Bound& b = buffers_[buffer];
    const unsigned char* p = element(b, offset, "read");
    if (b.shadow) judge_read(b, offset);
    if (b.lanes && phase_->apart && note_read((*b.lanes)[offset], lane_, fences_) != Conflict::none)
      fault(b, offset,
            fmt::format("is read by {} and written by {}, with no fence between: a race", lanes_text(lane_),
                        lanes_text((*b.lanes)[offset].writer)));
    return slot_of_bits(b.buffer->dtype, read_bits(p, b.bytes));
  }

  void judge_read(const Bound& b, std::int64_t offset) {
    ByGroups& cell = (*b.shadow)[offset];
    if (b.buffer->kind == Buffer::Kind::worker_scratch) {
      if (cell.writer != stamp_) fault(b, offset, "is read before this group has written it");
      return;
    }
    switch (note_read(cell, stamp_, phase_stamp_, b.buffer->kind == Buffer::Kind::argument)) {
      case Conflict::unwritten:
        fault(b, offset, "is read before any group has written it");
      case Conflict::written_by_other:
        fault(b, offset, fmt::format("is read, and written by group {} of the same phase: a race", group_of(cell.writer)));
      default:
        return;
    }
  }

  void store(std::uint32_t buffer, std::int64_t offset, std::uint64_t slot) {
    const Bound& b = buffers_[buffer];
    unsigned char* p = element(b, offset, "written");
    judge_lane_write(b, offset);
    ByGroups& cell = (*b.shadow)[offset];
    if (b.buffer->kind == Buffer::Kind::worker_scratch) {
      cell.writer = stamp_;
    } else {
      switch (note_write(cell, stamp_, phase_stamp_)) {
        case Conflict::written_by_other:
          fault(b, offset, fmt::format("is stored twice: group {} of the same phase has written it", group_of(cell.writer)));
        case Conflict::read_by_other:
          fault(b, offset, fmt::format("is written, and read by group {} of the same phase: a race", group_of(cell.reader)));
        default:
          break;
      }
    }
    write_bits(p, b.bytes, slot);
  }

  static std::string lanes_text(std::uint16_t lane) {
    return lane == several_lanes ? "several lanes" : fmt::format("lane {}", lane);
  }

  void judge_lane_write(const Bound& b, std::int64_t offset) {
    if (!b.lanes || !phase_->apart) return;
    const ByLanes before = (*b.lanes)[offset];
    const Conflict conflict = note_write((*b.lanes)[offset], lane_, fences_);
    if (conflict == Conflict::none) return;
    const bool written = conflict == Conflict::written_by_other;
    fault(b, offset,
          fmt::format("is written by {} and {} by {}, with no fence between: a race", lanes_text(lane_),
                      written ? "written" : "read", lanes_text(written ? before.writer : before.reader)));
  }

  std::uint64_t reference(const Instruction& i, std::uint64_t a, std::uint64_t b, std::uint64_t c) const {
    const Scalar args[3] = {scalar_of_slot(i.from, a), scalar_of_slot(i.from, b), scalar_of_slot(i.from, c)};
    return slot_of_scalar(i.to, ops::reference(i.op, i.from, i.to, args));
  }

  std::uint64_t library(const Instruction& i, std::uint64_t a, std::uint64_t b, std::uint64_t c) const {
    const double args[3] = {get<f64>(a), get<f64>(b), get<f64>(c)};
    return put(ops::reference_wide(i.op, args));
  }

  // Lanes store together, so no two of them may store to one element. (Those that go apart are watched anyway.)
  void store(const Instruction& i) {
    const std::uint64_t* s = slots_.data();
    const bool guarded = i.code == Code::store_guarded;
    for (std::uint32_t l = 0; l < i.lanes; ++l) {
      if (guarded && !s[i.c + (l & i.c_lanes)]) continue;
      const std::int64_t offset = get<i64>(s[i.a + l]);
      lane_ = static_cast<std::uint16_t>(l);
      for (std::uint32_t other = phase_->apart ? l : 0; other < l; ++other)
        if (get<i64>(s[i.a + other]) == offset && (!guarded || s[i.c + (other & i.c_lanes)]))
          fault(buffers_[i.buffer_or_target], offset, fmt::format("is stored twice: by lanes {} and {}", other, l));
      store(i.buffer_or_target, offset, s[i.b + (l & i.b_lanes)]);
    }
  }

  std::uint64_t first(const Instruction& i) const {
    const std::uint64_t* a = slots_.data() + i.a;
    const auto is_nan = [&](std::uint64_t slot) {
      const Scalar x = scalar_of_slot(i.from, slot);
      return is_float(i.from) && x.f != x.f;
    };
    for (std::uint32_t l = 1; l < i.lanes; ++l)
      if (a[l] != a[0] && !(is_nan(a[l]) && is_nan(a[0])))
        throw InternalError(fmt::format("simulator: kernel {}, phase {}, group {}: lanes 0 and {} disagree on a uniform value",
                                        k_.name, phase_->name, slots_[group_slot], l));
    return a[0];
  }

  void execute(const Instruction* code, std::size_t count) {
    std::uint64_t* const s = slots_.data();
    for (std::size_t at = 0; at < count;) {
      const Instruction& i = code[at++];
      const auto each = [&](auto value) {
        for (std::uint32_t l = 0; l < i.lanes; ++l)
          s[i.dst + l] = value(s[i.a + (l & i.a_lanes)], s[i.b + (l & i.b_lanes)], s[i.c + (l & i.c_lanes)]);
      };
      using Slot = std::uint64_t;
      switch (i.code) {
        case Code::copy:
          each([](Slot a, Slot, Slot) { return a; });
          break;
        case Code::jump:
          at = i.buffer_or_target;
          break;
        case Code::jump_unless:
          if (!s[i.a]) at = i.buffer_or_target;
          break;
        case Code::jump_unless_below:
          if (get<i64>(s[i.a]) >= get<i64>(s[i.b])) at = i.buffer_or_target;
          break;
        case Code::increment:
          ++s[i.dst];
          break;
        case Code::load:
        case Code::load_guarded:
          for (std::uint32_t l = 0; l < i.lanes; ++l) {
            // A value that does not vary is read by every lane.
            lane_ = i.lanes == 1 && phase_->lanes > 1 ? several_lanes : static_cast<std::uint16_t>(l);
            const bool excluded = i.code == Code::load_guarded && !s[i.b + (l & i.b_lanes)];
            s[i.dst + l] = excluded ? s[i.c + (l & i.c_lanes)] : load(i.buffer_or_target, get<i64>(s[i.a + (l & i.a_lanes)]));
          }
          break;
        case Code::store:
        case Code::store_guarded:
          store(i);
          break;
        case Code::fence:
          ++fences_;
          break;
        case Code::swap:
          for (std::uint32_t l = 0; l < i.lanes; ++l) s[i.dst + l] = s[i.a + (l ^ i.buffer_or_target)];
          break;
        case Code::first:
          s[i.dst] = first(i);
          break;
        case Code::select:
          each([](Slot a, Slot b, Slot c) { return a ? b : c; });
          break;
        case Code::both:
          each([](Slot a, Slot b, Slot) { return a & b; });
          break;
        case Code::either:
          each([](Slot a, Slot b, Slot) { return a | b; });
          break;
        case Code::convert:
          each([&](Slot a, Slot, Slot) { return convert(i.from, i.to, a); });
          break;
        case Code::reinterpret:
          each([&](Slot a, Slot, Slot) { return slot_of_bits(i.to, a); });
          break;
        case Code::reference:
          each([&](Slot a, Slot b, Slot c) { return reference(i, a, b, c); });
          break;
        case Code::library:
          each([&](Slot a, Slot b, Slot c) { return library(i, a, b, c); });
          break;
#define COSMATI_EXECUTE(type, op, formula, result)                                      \
  case Code::type##_##op:                                                               \
    each([](Slot x, [[maybe_unused]] Slot y, [[maybe_unused]] Slot z) {                 \
      [[maybe_unused]] const type a = get<type>(x), b = get<type>(y), c = get<type>(z); \
      return put(static_cast<result>(formula));                                         \
    });                                                                                 \
    break;
#define COSMATI_SAME(type, op, formula) COSMATI_EXECUTE(type, op, formula, type)
#define COSMATI_TEST(type, op, formula) COSMATI_EXECUTE(type, op, formula, bool)
          COSMATI_FAST_OPS(COSMATI_SAME, COSMATI_SAME, COSMATI_TEST)
#undef COSMATI_TEST
#undef COSMATI_SAME
#undef COSMATI_EXECUTE
      }
    }
  }

  const Kernel& k_;
  const Bytecode& code_;
  const Launch& launch_;
  std::vector<std::uint64_t> slots_;
  std::vector<Bound> buffers_;
  const Phase* phase_ = nullptr;
  std::uint32_t stamp_ = 0, phase_stamp_ = 0;  // stamps of this group and of the phase's first group
  std::uint32_t fences_ = 0;                   // so many, and starts of groups
  std::uint16_t lane_ = 0;                     // that executes
};

class Simulator : public Executable {
 public:
  explicit Simulator(const Kernel& k) : k_(k), code_(assemble(k_)) {}
  int workers() const override { return worker_count; }
  using Executable::run;
  void run(const Launch& launch, const Queue*) const override {
    const DefaultFloats floats;
    Run(k_, code_, launch).run();
  }

 private:
  Kernel k_;
  Bytecode code_;
};

}  // namespace

std::unique_ptr<Executable> simulate(const Kernel& k) {
  verify(k, "simulate");
  return std::make_unique<Simulator>(k);
}

}  // namespace cosmati::kernel
