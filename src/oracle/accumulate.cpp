// The accumulators of the built-in reducers with closed error bounds, and the general one that runs lambdas.
// SPDX-License-Identifier: Apache-2.0
#include "oracle/accumulate.h"

#include <algorithm>

#include "support/check.h"

namespace cosmati::oracle {

using ops::Op;

namespace {

double error_at(const Dense& d, std::int64_t k) { return d.err.empty() ? 0 : d.err[k]; }
double real_at(const Dense& d, std::int64_t k) { return d.f.empty() ? static_cast<double>(d.i[k]) : d.f[k]; }

Num in_mode(const ReducerContext& c, DType t, Num v) {
  if (!c.wide) {
    if (is_float(t)) v.f = ops::round_to(t, v.f);
    v.err = 0;
  }
  return v;
}

double finite_size(double x) {
  const double size = std::fabs(x);
  return size < infinity ? size : 0;
}

// The bound of an infinite or NaN sum, in any order: finite terms of this size may overflow to the other infinity.
double beside_infinity(DType t, double sum, double size) { return std::isinf(sum) && size > precision(t).largest ? infinity : 0; }

// sum and mean of floats, of products of floats, and the mean of integers.
class Sum final : public Accumulator {
 public:
  Sum(const ReducerContext& c, std::int64_t n)
      : c_(c), mean_(c.reducer.name == "mean"), result_(c.reducer.result_types.at(0)), value_(n), size_(n), error_(n) {}

  void run(const std::vector<Ref>& args, const Run& r) override {
    if (c_.product)
      products(*args[0], *args[1], r);
    else
      elements(*args[0], r);
  }

  void finish(std::int64_t count, std::int64_t o, Num* results) override {
    const double n = static_cast<double>(count), divisor = mean_ ? n : 1;
    Num v{value_[o] / divisor, 0, 0};
    if (c_.wide && std::isfinite(v.f)) {
      const double unit = precision(result_).unit * (result_ == DType::f64_ ? 2 : 1);
      // A fused product adds its own rounding; relaxations round the factors.
      const double roundings = std::max(n - 1, 0.0) + (c_.product ? 1 : 0);
      const double size = size_[o] + error_[o];  // of what a device adds
      double err = error_[o] + roundings * unit * size + (c_.product ? n * precision(result_).tiny : 0) + c_.relaxed * size;
      if (certain(n, o)) err = 0;
      err = within_range(result_, size_[o], err);
      if (mean_) err = err / divisor + rounding(result_, v.f, 0.5, err == 0);
      v.err = err;
    } else if (c_.wide) {
      v.err = std::isfinite(error_[o]) ? beside_infinity(result_, v.f, size_[o]) : infinity;
    }
    // Integers are added as i64, which wraps.
    if (c_.wide && is_int(c_.reducer.arg_types.at(0)) && size_[o] >= 0x1p63) v.err = infinity;
    results[0] = in_mode(c_, result_, v);
  }

 private:
  // Sums of exact small integers are exact in any order: no partial sum needs more bits than the type has.
  bool certain(double n, std::int64_t o) const {
    return error_[o] == 0 && c_.relaxed == 0 && whole_ && (n == 1 || size_[o] * precision(result_).unit <= 0.5);
  }

  void elements(const Dense& a, const Run& r) {
    double v = 0, s = 0, e = 0;
    for (std::int64_t k = 0; k < r.n; ++k) {
      const std::int64_t at = r.at[0] + k * r.stride[0];
      const double x = real_at(a, at);
      if (r.out_stride != 0)
        add(r.out + k * r.out_stride, x, finite_size(x), error_at(a, at));
      else
        v += x, s += finite_size(x), e += error_at(a, at);
      if (whole_ && x != std::trunc(x)) whole_ = false;
    }
    if (r.out_stride == 0) add(r.out, v, s, e);
  }

  void products(const Dense& a, const Dense& b, const Run& r) {
    const bool single = !c_.wide && a.dtype == DType::f32_;
    const double *x = a.f.data() + r.at[0], *y = b.f.data() + r.at[1];
    const std::int64_t sx = r.stride[0], sy = r.stride[1];
    whole_ = false;
    if (single) {
      for (std::int64_t k = 0; k < r.n; ++k)
        value_[r.out + k * r.out_stride] += static_cast<double>(static_cast<float>(x[k * sx] * y[k * sy]));
      return;
    }
    if (r.out_stride != 0) {
      double* v = value_.data() + r.out;
      double* s = size_.data() + r.out;
      for (std::int64_t k = 0; k < r.n; ++k) {
        const double p = x[k * sx] * y[k * sy];
        v[k * r.out_stride] += p;
        s[k * r.out_stride] += finite_size(p);
      }
    } else {
      double v[4] = {}, s[4] = {};
      std::int64_t k = 0;
      for (; k + 4 <= r.n; k += 4)
        for (int lane = 0; lane < 4; ++lane) {
          const double p = x[(k + lane) * sx] * y[(k + lane) * sy];
          v[lane] += p;
          s[lane] += finite_size(p);
        }
      for (; k < r.n; ++k) {
        const double p = x[k * sx] * y[k * sy];
        v[0] += p;
        s[0] += finite_size(p);
      }
      add(r.out, v[0] + v[1] + (v[2] + v[3]), s[0] + s[1] + (s[2] + s[3]), 0);
    }
    if (a.err.empty() && b.err.empty()) return;
    for (std::int64_t k = 0; k < r.n; ++k) {
      const double ea = error_at(a, r.at[0] + k * sx), eb = error_at(b, r.at[1] + k * sy);
      error_[r.out + k * r.out_stride] +=
          ea == 0 && eb == 0 ? 0 : std::fabs(x[k * sx]) * eb + std::fabs(y[k * sy]) * ea + ea * eb;
    }
  }

  void add(std::int64_t o, double v, double s, double e) {
    value_[o] += v;
    size_[o] += s;
    error_[o] += e;
  }

  ReducerContext c_;
  bool mean_;
  DType result_;
  bool whole_ = true;
  std::vector<double> value_, size_, error_;  // the sum, and those of the sizes of finite terms and of their errors
};

double nan_max(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? NAN : a > b || (a == b && !std::signbit(a)) ? a : b;
}
double nan_min(double a, double b) { return std::isnan(a) || std::isnan(b) ? NAN : a < b || (a == b && std::signbit(a)) ? a : b; }
double num_max(double a, double b) { return std::isnan(a) ? b : std::isnan(b) ? a : nan_max(a, b); }
double num_min(double a, double b) { return std::isnan(a) ? b : std::isnan(b) ? a : nan_min(a, b); }

class Extreme final : public Accumulator {
 public:
  using Pick = double (*)(double, double);
  Extreme(const ReducerContext& c, Pick pick, double start, std::int64_t n)
      : c_(c), pick_(pick), value_(n, start), high_(c.wide ? n : 0, start), low_(c.wide ? n : 0, start), unknown_(n) {}
  static Pick pick(Op fold) {
    switch (fold) {
      case Op::maximum:
        return nan_max;
      case Op::minimum:
        return nan_min;
      case Op::maximum_num:
        return num_max;
      case Op::minimum_num:
        return num_min;
      default:
        return nullptr;
    }
  }
  void run(const std::vector<Ref>& args, const Run& r) override {
    const Dense& a = *args[0];
    for (std::int64_t k = 0; k < r.n; ++k) {
      const std::int64_t at = r.at[0] + k * r.stride[0], o = r.out + k * r.out_stride;
      const double x = a.f[at];
      value_[o] = pick_(value_[o], x);
      if (!c_.wide) continue;
      const double e = error_at(a, at);
      if (std::isinf(e))
        unknown_[o] = true;
      else {
        high_[o] = pick_(high_[o], x + e);
        low_[o] = pick_(low_[o], x - e);
      }
    }
  }
  void finish(std::int64_t, std::int64_t o, Num* results) override {
    Num v{value_[o], 0, 0};
    if (c_.wide) {
      const auto side = [&](double to) { return to == v.f || (std::isnan(to) && std::isnan(v.f)) ? 0 : std::fabs(to - v.f); };
      v.err = unknown_[o] ? infinity : std::max(side(high_[o]), side(low_[o]));
      if (std::isnan(v.err)) v.err = infinity;
    }
    results[0] = v;
  }

 private:
  ReducerContext c_;
  Pick pick_;
  std::vector<double> value_, high_, low_;
  std::vector<char> unknown_;
};

class Product final : public Accumulator {
 public:
  Product(const ReducerContext& c, std::int64_t n)
      : c_(c), type_(c.reducer.result_types.at(0)), value_(n, 1), error_(n), up_(n), down_(n) {}
  void run(const std::vector<Ref>& args, const Run& r) override {
    for (std::int64_t k = 0; k < r.n; ++k) {
      const std::int64_t at = r.at[0] + k * r.stride[0], o = r.out + k * r.out_stride;
      const double x = args[0]->f[at], e = error_at(*args[0], at), p = value_[o] * x;
      if (c_.wide) {
        error_[o] = e == 0 && error_[o] == 0 ? 0 : std::fabs(value_[o]) * e + std::fabs(x) * error_[o] + e * error_[o];
        error_[o] += rounding(type_, p, 0.5, error_[o] == 0);
        const double magnitude = x == 0 ? 0 : std::log2(std::fabs(x));
        (magnitude > 0 ? up_ : down_)[o] += std::fabs(magnitude);
      }
      value_[o] = p;
    }
  }
  void finish(std::int64_t count, std::int64_t o, Num* results) override {
    Num v{value_[o], 0, error_[o]};
    const double room = std::log2(precision(type_).largest) - 2;
    if (count > 1 && !std::isnan(v.f) && (up_[o] > room || down_[o] > room)) v.err = infinity;
    if (std::isnan(v.err)) v.err = infinity;
    results[0] = in_mode(c_, type_, v);
  }

 private:
  ReducerContext c_;
  DType type_;
  std::vector<double> value_, error_, up_, down_;
};

// Folds of integers and booleans.
class Integers final : public Accumulator {
 public:
  Integers(const ReducerContext& c, std::int64_t start, std::int64_t n)
      : c_(c), type_(c.reducer.result_types.at(0)), fold_(*c.reducer.fold), state_(n, Num{0, start, 0}) {}
  void run(const std::vector<Ref>& args, const Run& r) override {
    for (std::int64_t k = 0; k < r.n; ++k) {
      const Num next = args[0]->at(r.at[0] + k * r.stride[0]);
      Num& s = state_[r.out + k * r.out_stride];
      if (fold_ == Op::add && s.err == 0 && next.err == 0) {
        s.i =
            ops::wrap_to(type_, static_cast<std::int64_t>(static_cast<std::uint64_t>(s.i) + static_cast<std::uint64_t>(next.i)));
        continue;
      }
      const Num pair[2] = {s, next};
      s = c_.wide ? apply_wide(fold_, type_, type_, pair) : apply_typed(fold_, type_, type_, pair);
    }
  }
  void finish(std::int64_t, std::int64_t o, Num* results) override { results[0] = state_[o]; }

 private:
  ReducerContext c_;
  DType type_;
  Op fold_;
  std::vector<Num> state_;
};

class Best final : public Accumulator {
 public:
  Best(const ReducerContext& c, bool largest, std::int64_t n) : sign_(largest ? 1 : -1), real_(is_float(c.argument)), state_(n) {}
  void run(const std::vector<Ref>& args, const Run& r) override {
    for (std::int64_t k = 0; k < r.n; ++k) {
      State& s = state_[r.out + k * r.out_stride];
      Num x = args[0]->at(r.at[0] + k * r.stride[0]);
      const std::int64_t index = args[1]->i[r.at[1] + k * r.stride[1]];
      x.f *= sign_;
      if (s.index < 0) {
        s.value = x;
        s.index = index;
      } else if (wins(x, index, s)) {
        rival(s, s.value);
        s.value = x;
        s.index = index;
      } else {
        rival(s, x);
      }
      if (std::isinf(x.err)) s.unknown = true;
    }
  }
  void finish(std::int64_t, std::int64_t o, Num* results) override {
    const State& s = state_[o];
    bool uncertain = s.unknown;
    if (real_) {
      // Elements without error only threaten a best that has one; ties of certain values are decided by the index.
      uncertain = uncertain || s.loose >= s.value.f - s.value.err || (s.value.err > 0 && s.firm >= s.value.f - s.value.err);
    } else {
      uncertain = uncertain || s.value.err > 0 || s.loose > -infinity;
    }
    results[0] = {0, s.index, uncertain ? infinity : 0};
  }

 private:
  struct State {
    Num value;
    std::int64_t index = -1;
    double firm = -infinity, loose = -infinity;  // the largest others: certain, and uncertain with their error
    bool unknown = false;
  };
  bool wins(const Num& x, std::int64_t index, const State& s) const {
    if (!real_) return sign_ > 0 ? x.i > s.value.i : x.i < s.value.i;
    const bool nan = std::isnan(x.f), held = std::isnan(s.value.f);
    if (nan || held) return nan && (!held || index < s.index);
    return x.f > s.value.f || (x.f == s.value.f && index < s.index);
  }
  static void rival(State& s, const Num& x) {
    if (x.err > 0)
      s.loose = std::max(s.loose, x.f + x.err);
    else
      s.firm = std::max(s.firm, x.f);
  }
  double sign_;
  bool real_;
  std::vector<State> state_;
};

class MeanVar final : public Accumulator {
 public:
  MeanVar(const ReducerContext& c, std::int64_t n) : c_(c), state_(n) {}
  void run(const std::vector<Ref>& args, const Run& r) override {
    for (std::int64_t k = 0; k < r.n; ++k) {
      const std::int64_t at = r.at[0] + k * r.stride[0];
      State& s = state_[r.out + k * r.out_stride];
      const double x = args[0]->f[at], e = error_at(*args[0], at);
      if (s.count == 0) s.base = x;
      s.count += 1;
      s.sum += x;
      s.size += finite_size(x);
      const double from_base = x - s.base, delta = from_base - s.offset;
      s.offset += delta / s.count;
      s.squares += delta * (from_base - s.offset);
      s.error += e;
      s.error_squares += e * e;
    }
  }
  void finish(std::int64_t count, std::int64_t o, Num* results) override {
    const State& s = state_[o];
    const double n = static_cast<double>(count), center = s.base + s.offset, var = s.squares / n, sigma = std::sqrt(var),
                 rms = std::sqrt(s.error_squares / n);
    const DType t = c_.reducer.result_types.at(0);
    const double size = std::hypot(center, sigma), unit = precision(t).unit, tiny = n * precision(t).tiny;
    // What the merges lose, and what float64 itself loses here where t is no narrower.
    const double lost = 4 * n * (unit * (sigma + unit * size) + precision(DType::f64_).unit * std::hypot(s.offset, sigma));
    Num mean{center, 0, s.error / n + lost + 2 * unit * std::fabs(center) + tiny},
        variance{var, 0, 2 * sigma * rms + rms * rms + 2 * sigma * lost + lost * lost + tiny};
    mean.err = within_range(t, size * n, mean.err);
    variance.err = within_range(t, size * size * n, variance.err);
    // With an infinity or NaN among the elements the mean is what their sum is.
    if (!std::isfinite(center)) {
      mean.f = s.sum;
      mean.err = std::isfinite(s.sum) || s.error > 0 ? infinity : beside_infinity(t, s.sum, s.size);
    }
    if (!std::isfinite(var)) variance.err = std::isnan(var) && s.error == 0 ? 0 : infinity;
    if (n == 1 && s.error == 0) mean.err = 0;
    results[0] = in_mode(c_, t, mean);
    results[1] = in_mode(c_, t, variance);
  }

 private:
  struct State {
    double count = 0, sum = 0, size = 0;  // size: of the finite elements
    double base = 0, offset = 0;          // the mean is base + offset
    double squares = 0, error = 0, error_squares = 0;
  };
  ReducerContext c_;
  std::vector<State> state_;
};

class LogSumExp final : public Accumulator {
 public:
  LogSumExp(const ReducerContext& c, std::int64_t n) : c_(c), state_(n) {}
  void run(const std::vector<Ref>& args, const Run& r) override {
    for (std::int64_t k = 0; k < r.n; ++k) {
      const std::int64_t at = r.at[0] + k * r.stride[0];
      State& s = state_[r.out + k * r.out_stride];
      const double x = args[0]->f[at];
      s.error = std::max(s.error, error_at(*args[0], at));
      if (std::isnan(s.max)) continue;
      if (std::isnan(x))
        s.max = x;
      else if (x > s.max) {
        s.sum = s.sum * std::exp(s.max - x) + 1;
        s.max = x;
      } else if (x > -infinity) {
        s.sum += x == s.max ? 1 : std::exp(x - s.max);
      }
    }
  }
  void finish(std::int64_t count, std::int64_t o, Num* results) override {
    const State& s = state_[o];
    const DType t = c_.reducer.result_types.at(0);
    Num v{s.max == -infinity || std::isnan(s.max) || s.max == infinity ? s.max : s.max + std::log(s.sum), 0, 0};
    if (std::isfinite(v.f)) {
      const double n = static_cast<double>(count), unit = precision(t).unit * (t == DType::f64_ ? 2 : 1);
      v.err = s.error + unit * (4 * n + std::log(n) + 4 + 2 * std::fabs(v.f - s.max)) + rounding(t, v.f, 0.5, false);
      v.err = within_range(t, v.f, v.err);
    } else {
      v.err = std::isfinite(s.error) ? 0 : infinity;
    }
    results[0] = in_mode(c_, t, v);
  }

 private:
  struct State {
    double max = -infinity, sum = 0, error = 0;
  };
  ReducerContext c_;
  std::vector<State> state_;
};

constexpr std::size_t state_limit = 32;

class General final : public Accumulator {
 public:
  General(const ReducerContext& c, std::int64_t n)
      : c_(c),
        lift_(c.program, c.reducer.lift, c.wide, c.outer),
        merge_(c.program, c.reducer.merge, c.wide, c.outer),
        finish_(c.program, c.reducer.finish, c.wide, c.outer),
        width_(c.reducer.state_types.size()),
        state_(n * width_),
        met_(n * width_) {
    COSMATI_CHECK(width_ <= state_limit && c.reducer.arg_types.size() <= state_limit, "{} has too many states", c.reducer.name);
    Tape identity(c.program, c.reducer.identity, c.wide, c.outer);
    for (std::int64_t o = 0; o < n; ++o) identity.run(nullptr, state_.data() + o * width_);
  }
  void run(const std::vector<Ref>& args, const Run& r) override {
    Num in[state_limit], pair[2 * state_limit], out[state_limit];
    for (std::int64_t k = 0; k < r.n; ++k) {
      for (std::size_t a = 0; a < args.size(); ++a) in[a] = args[a]->at(r.at[a] + k * r.stride[a]);
      const std::int64_t at = (r.out + k * r.out_stride) * static_cast<std::int64_t>(width_);
      Num* state = state_.data() + at;
      lift_.run(in, pair + width_);
      std::copy_n(state, width_, pair);
      merge_.run(pair, out);
      for (std::size_t w = 0; w < width_; ++w) {
        Met& met = met_[at + w];
        met.sum += finite_size(pair[width_ + w].f);
        met.error += pair[width_ + w].err;
        met.largest = std::max({met.largest, finite_size(pair[width_ + w].f), finite_size(out[w].f)});
      }
      std::copy_n(out, width_, state);
    }
  }
  void finish(std::int64_t count, std::int64_t o, Num* results) override {
    Num state[state_limit + 1];
    std::copy_n(state_.data() + o * width_, width_, state);
    const double n = static_cast<double>(count);
    if (c_.wide)
      for (std::size_t k = 0; k < width_; ++k) {
        const DType t = c_.reducer.state_types[k];
        if (!is_float(t)) continue;
        const double unit = precision(t).unit * (t == DType::f64_ ? 2 : 1);  // float64 rounds here too
        // On the way to a small sum another tree may meet larger ones, and round where this order was exact.
        const Met& met = met_[o * static_cast<std::int64_t>(width_) + k];
        if (adds(k) && std::isfinite(state[k].f))
          state[k].err = std::max(state[k].err, within_range(t, met.sum, met.error + n * unit * met.sum));
        else if (adds(k))
          state[k].err = std::max(state[k].err, beside_infinity(t, state[k].f, met.sum));
        else if (state[k].err > 0 || (n > 1 && merge_.rounds(k) && std::isfinite(state[k].f)))
          state[k].err = std::isfinite(state[k].f) ? 2 * state[k].err + n * unit * met.largest : infinity;
      }
    state[width_] = {static_cast<double>(count), 0, 0};
    finish_.run(state, results);
  }

 private:
  // Whether merging adds this state of both sides.
  bool adds(std::size_t k) const {
    const auto* e = std::get_if<ir::Elementwise>(&c_.program[c_.reducer.merge.results[k]].node);
    if (!e || e->op != ops::Op::add) return false;
    const auto is_arg = [&](ir::ValueId v, std::size_t slot) {
      const auto* arg = std::get_if<ir::Arg>(&c_.program[v].node);
      return arg && arg->slot == slot;
    };
    return (is_arg(e->args[0], k) && is_arg(e->args[1], width_ + k)) || (is_arg(e->args[1], k) && is_arg(e->args[0], width_ + k));
  }

  struct Met {
    double sum = 0, error = 0;  // of the sizes of the lifted elements, and of their errors
    double largest = 0;         // of the lifted elements and of the states
  };
  ReducerContext c_;
  Tape lift_, merge_, finish_;
  std::size_t width_;
  std::vector<Num> state_;
  std::vector<Met> met_;
};

}  // namespace

std::unique_ptr<Accumulator> accumulator(const ReducerContext& c, std::int64_t n) {
  const ir::Reducer& r = c.reducer;
  const DType state = r.state_types.at(0);
  if (r.builtin && r.name == "mean") return std::make_unique<Sum>(c, n);
  if (r.builtin && r.name == "mean_var") return std::make_unique<MeanVar>(c, n);
  if (r.builtin && r.name == "logsumexp") return std::make_unique<LogSumExp>(c, n);
  if (r.builtin && (r.name == "argmax" || r.name == "argmin")) return std::make_unique<Best>(c, r.name == "argmax", n);
  const bool plain = r.fold && Tape(c.program, r.lift, c.wide, c.outer).is_identity() &&
                     Tape(c.program, r.finish, c.wide, c.outer).is_identity() && r.result_types == r.state_types &&
                     r.arg_types.at(0) == state && (is_float(state) || r.builtin);
  if (!plain) return std::make_unique<General>(c, n);
  if (is_float(state)) {
    Num start[state_limit];
    Tape(c.program, r.identity, c.wide, c.outer).run(nullptr, start);
    if (r.fold == Op::add && start[0].f == 0) return std::make_unique<Sum>(c, n);
    if (r.fold == Op::mul && start[0].f == 1) return std::make_unique<Product>(c, n);
    if (const auto pick = Extreme::pick(*r.fold)) return std::make_unique<Extreme>(c, pick, start[0].f, n);
    return std::make_unique<General>(c, n);
  }
  Num start[state_limit];
  Tape(c.program, r.identity, c.wide, c.outer).run(nullptr, start);
  return std::make_unique<Integers>(c, start[0].i, n);
}

std::vector<Num> of_nothing(const ReducerContext& c) {
  Num state[state_limit + 1];
  Tape(c.program, c.reducer.identity, c.wide, c.outer).run(nullptr, state);
  state[c.reducer.state_types.size()] = {};
  std::vector<Num> results(c.reducer.finish.results.size());
  Tape(c.program, c.reducer.finish, c.wide, c.outer).run(state, results.data());
  return results;
}

}  // namespace cosmati::oracle
