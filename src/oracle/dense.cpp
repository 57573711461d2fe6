// Broadcasting, elementwise kernels and gathers over dense arrays. The loops over plain arrays exist for the operations that
// carry the cost of real programs; every other operation, and every non-finite result, goes through the scalar rules.
// SPDX-License-Identifier: Apache-2.0
#include "oracle/dense.h"

#include <algorithm>
#include <array>
#include <limits>

#include "support/check.h"
#include "support/memory.h"

namespace cosmati::oracle {

using ops::Op;

namespace {
constexpr std::int64_t element_limit = std::int64_t{1} << 34;
}

std::int64_t elements(const Dims& dims) {
  std::int64_t n = 1;
  for (const Dim& d : dims)
    if (__builtin_mul_overflow(n, d.size, &n)) n = std::numeric_limits<std::int64_t>::max() / 2;
  return n;
}

Dims join(const Dims& a, const Dims& b) {
  Dims out;
  out.reserve(a.size() + b.size());
  std::size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    if (j == b.size() || (i < a.size() && a[i].id < b[j].id))
      out.push_back(a[i++]);
    else if (i == a.size() || b[j].id < a[i].id)
      out.push_back(b[j++]);
    else {
      COSMATI_CHECK(a[i].size == b[j].size, "dimension {} has sizes {} and {}", a[i].id, a[i].size, b[j].size);
      out.push_back(a[i]);
      ++i, ++j;
    }
  }
  return out;
}

std::shared_ptr<Dense> make(DType dtype, Dims dims, bool with_error) {
  auto out = std::make_shared<Dense>();
  out->dtype = dtype;
  const std::int64_t size = elements(dims);
  if (size > std::min(element_limit, support::machine_memory() / 8))
    throw Error(ErrorCode::not_supported, {}, fmt::format("the oracle would need {} elements for one value", size),
                "use smaller extents");
  const auto n = static_cast<std::size_t>(size);
  out->dims = std::move(dims);
  if (is_float(dtype))
    out->f.resize(n);
  else
    out->i.resize(n);
  if (with_error) out->err.resize(n);
  return out;
}

Ref seal(std::shared_ptr<Dense> value) {
  if (std::all_of(value->err.begin(), value->err.end(), [](double e) { return e == 0; })) value->err = {};
  return value;
}

Ref scalar(DType dtype, const Num& v) {
  auto out = make(dtype, {}, v.err > 0);
  out->set(0, v);
  return out;
}

Ref iota(std::uint32_t dim, std::int64_t lo, std::int64_t hi) {
  // Bounds may come from any integers of the caller's.
  if (std::int64_t n = 0; __builtin_sub_overflow(hi, lo, &n) || n > element_limit)
    throw Error(ErrorCode::not_supported, {}, fmt::format("a range from {} to {} is too long for the oracle", lo, hi),
                "use smaller extents");
  auto out = make(DType::i64_, {{dim, hi - lo}}, false);
  for (std::int64_t k = lo; k < hi; ++k) out->i[k - lo] = k;
  return out;
}

Ref unjudged(const Ref& value) {
  auto out = std::make_shared<Dense>(*value);
  for (Ref& part : out->parts) part = unjudged(part);
  if (out->parts.empty()) out->err.assign(static_cast<std::size_t>(out->size()), is_bool(out->dtype) ? 1 : infinity);
  return out;
}

void Nest::operand(const Dims& own) {
  std::vector<std::int64_t> strides(dims_.size(), 0);
  std::int64_t stride = 1;
  std::size_t found = 0;
  for (std::size_t d = dims_.size(), o = own.size(); d > 0 && o > 0; --d) {
    if (own[o - 1].id != dims_[d - 1].id) continue;
    strides[d - 1] = stride;
    stride *= own[--o].size;
    ++found;
  }
  COSMATI_CHECK(found == own.size(), "an operand has a dimension that the walk has not");
  strides_.push_back(std::move(strides));
}

void Nest::collapse() {
  std::size_t kept = 0;  // dimensions written back so far
  for (std::size_t d = 0; d < dims_.size(); ++d) {
    if (dims_[d].size == 0) empty_ = true;
    if (dims_[d].size == 1) continue;
    const bool joins = kept > 0 && std::all_of(strides_.begin(), strides_.end(),
                                               [&](const auto& s) { return s[kept - 1] == s[d] * dims_[d].size; });
    const std::size_t to = joins ? kept - 1 : kept++;
    const std::int64_t size = joins ? dims_[to].size * dims_[d].size : dims_[d].size;
    for (auto& s : strides_) s[to] = s[d];
    dims_[to] = {dims_[d].id, size};
  }
  for (auto& s : strides_) {
    inner_.push_back(kept > 0 ? s[kept - 1] : 0);
    s.resize(kept > 0 ? kept - 1 : 0);
  }
  inner_size_ = kept > 0 ? dims_[kept - 1].size : 1;
  for (std::size_t d = 0; d + 1 < kept; ++d) outer_sizes_.push_back(dims_[d].size);
}

namespace {

constexpr std::int64_t chunk = 512;
constexpr std::array<double, chunk> zeros{};

// The arguments of one chunk as contiguous arrays, and where its results go.
struct Chunk {
  std::int64_t n;
  const double* f[3];
  const std::int64_t* i[3];
  const double* err[3];
  double* out_f;
  std::int64_t* out_i;
  double* out_err;  // null in typed mode
};

void by_scalar(bool wide, Op op, DType argument, DType result, int arity, const Chunk& c, std::int64_t k) {
  Num args[3];
  for (int a = 0; a < arity; ++a) args[a] = {c.f[a] ? c.f[a][k] : 0, c.i[a] ? c.i[a][k] : 0, c.err[a][k]};
  const Num r = wide ? apply_wide(op, argument, result, args) : apply_typed(op, argument, result, args);
  if (c.out_f)
    c.out_f[k] = r.f;
  else
    c.out_i[k] = r.i;
  if (c.out_err) c.out_err[k] = r.err;
}

// The value by `value(a, b)` and the propagated error by `moved(a, ea, b, eb, r)`; the operation rounds correctly.
template <class Value, class Moved>
void rounded(Op op, DType argument, DType result, int arity, const Chunk& c, Value value, Moved moved) {
  const double *a = c.f[0], *b = arity > 1 ? c.f[1] : c.f[0], *ea = c.err[0], *eb = arity > 1 ? c.err[1] : zeros.data();
  const Precision& p = precision(result);
  const double own = result == DType::f64_ ? 1 : 0x1p-29;                     // the rounding of this evaluation,
  const double unit = (1 + own) * p.unit, tiny = (0.5 + 2.5 * own) * p.tiny;  // and below the normal numbers that of `moved`
  const double largest = p.largest;
  const bool narrow = result == DType::f32_, twice = result == DType::f64_;
  for (std::int64_t k = 0; k < c.n; ++k) {
    const double r = value(a[k], b[k]);
    const double e = moved(a[k], ea[k], b[k], eb[k], r);
    const bool certain = ea[k] == 0 && eb[k] == 0;
    const bool fits = twice || (narrow && static_cast<double>(static_cast<float>(r)) == r);
    c.out_f[k] = r;
    const double size = std::fabs(r) + e;  // what a device rounds may be larger than r
    c.out_err[k] = size == 0 || (certain && fits) ? 0 : e + unit * size + tiny;
    if (!(std::fabs(r) + c.out_err[k] <= largest)) by_scalar(true, op, argument, result, arity, c, k);
  }
}

template <class Value>
void typed_f32(const Chunk& c, Value value) {
  for (std::int64_t k = 0; k < c.n; ++k) c.out_f[k] = static_cast<float>(value(c.f[0][k], c.f[1][k]));
}

double larger(double a, double b) { return a > b || a != a ? a : b; }
double smaller(double a, double b) { return a < b || a != a ? a : b; }

// The loops. False: this operation has none.
bool wide_loop(Op op, DType argument, DType result, const Chunk& c) {
  if (argument != result || (result != DType::f32_ && result != DType::f64_)) return false;
  const auto sum_of_errors = [](double, double ea, double, double eb, double) { return ea + eb; };
  switch (op) {
    case Op::add:
      rounded(op, argument, result, 2, c, [](double a, double b) { return a + b; }, sum_of_errors);
      return true;
    case Op::sub:
      rounded(op, argument, result, 2, c, [](double a, double b) { return a - b; }, sum_of_errors);
      return true;
    case Op::mul:
      rounded(
          op, argument, result, 2, c, [](double a, double b) { return a * b; },
          [](double a, double ea, double b, double eb, double) { return std::fabs(a) * eb + std::fabs(b) * ea + ea * eb; });
      return true;
    case Op::div:
      rounded(
          op, argument, result, 2, c, [](double a, double b) { return a / b; },
          [](double, double ea, double b, double eb, double r) {
            if (ea == 0 && eb == 0) return 0.0;
            const double moved = ea + std::fabs(r) * eb;
            // A subnormal number has too few digits to divide; the scalar rules do.
            return eb < std::fabs(b) && moved > 1e-290 ? moved / (std::fabs(b) - eb) : infinity;
          });
      return true;
    case Op::maximum:
    case Op::minimum: {
      const auto pick = op == Op::maximum ? larger : smaller;
      for (std::int64_t k = 0; k < c.n; ++k) {
        const double a = c.f[0][k], b = c.f[1][k], ea = c.err[0][k], eb = c.err[1][k], r = pick(a, b);
        c.out_f[k] = r;
        c.out_err[k] = std::max(std::fabs(pick(a + ea, b + eb) - r), std::fabs(r - pick(a - ea, b - eb)));
        if (!std::isfinite(a + ea + (b + eb)) || a == b) by_scalar(true, op, argument, result, 2, c, k);
      }
      return true;
    }
    case Op::exp: {
      const Precision& p = precision(result);
      const double unit = (2 + 1e-6) * p.unit + (result == DType::f64_ ? p.unit : 0);
      for (std::int64_t k = 0; k < c.n; ++k) {
        const double r = std::exp(c.f[0][k]), e = c.err[0][k];
        c.out_f[k] = r;
        const double moved = e == 0 ? 0 : r * std::expm1(e);
        c.out_err[k] = moved + unit * (r + moved) + p.tiny;
        // Nothing is left to scale of an exponential that is no normal number.
        if (!(r + c.out_err[k] <= p.largest) || r < std::numeric_limits<double>::min())
          by_scalar(true, op, argument, result, 1, c, k);
      }
      return true;
    }
    default:
      return false;
  }
}

bool typed_loop(Op op, DType argument, DType result, const Chunk& c) {
  // float64 has more than twice the bits of float32, so rounding its correctly rounded result once more is correct.
  if (argument != DType::f32_ || result != DType::f32_) return false;
  switch (op) {
    case Op::add:
      typed_f32(c, [](double a, double b) { return a + b; });
      return true;
    case Op::sub:
      typed_f32(c, [](double a, double b) { return a - b; });
      return true;
    case Op::mul:
      typed_f32(c, [](double a, double b) { return a * b; });
      return true;
    case Op::div:
      typed_f32(c, [](double a, double b) { return a / b; });
      return true;
    default:
      return false;
  }
}

}  // namespace

Ref elementwise(bool wide, Op op, DType argument, DType result, const std::vector<Ref>& args) {
  const int arity = static_cast<int>(args.size());
  Dims dims;
  bool exact = true;
  for (const Ref& a : args) {
    dims = join(dims, a->dims);
    exact = exact && a->err.empty();
  }
  // From certain integers come certain integers and comparisons; certain floats still round.
  const bool errors = wide && (!exact || is_float(result));
  auto out = make(result, dims, errors);
  Nest nest(dims);
  nest.operand(dims);
  for (const Ref& a : args) nest.operand(a->dims);
  nest.collapse();
  std::array<std::array<double, chunk>, 3> fill_f, fill_err;
  std::array<std::array<std::int64_t, chunk>, 3> fill_i;
  nest.runs([&](const std::int64_t* offsets, std::int64_t run) {
    for (std::int64_t start = 0; start < run; start += chunk) {
      Chunk c{};
      c.n = std::min(chunk, run - start);
      const std::int64_t to = offsets[0] + start;
      if (is_float(result))
        c.out_f = out->f.data() + to;
      else
        c.out_i = out->i.data() + to;
      c.out_err = errors ? out->err.data() + to : nullptr;
      for (int a = 0; a < arity; ++a) {
        const Dense& d = *args[a];
        const bool along = nest.stride(a + 1) != 0;
        const std::int64_t from = offsets[a + 1] + (along ? start : 0);
        const auto place = [&](const auto& data, auto& fill) {
          if (along || c.n == 1) return data.data() + from;
          if (start == 0) std::fill_n(fill.data(), c.n, data[from]);
          return static_cast<decltype(data.data())>(fill.data());
        };
        if (!d.f.empty()) c.f[a] = place(d.f, fill_f[a]);
        if (!d.i.empty()) c.i[a] = place(d.i, fill_i[a]);
        c.err[a] = d.err.empty() ? zeros.data() : place(d.err, fill_err[a]);
      }
      if (wide ? errors && wide_loop(op, argument, result, c) : typed_loop(op, argument, result, c)) continue;
      for (std::int64_t k = 0; k < c.n; ++k) by_scalar(wide, op, argument, result, arity, c, k);
    }
  });
  return seal(std::move(out));
}

Ref choose(const Ref& valid, const Ref& value, const Ref& otherwise) {
  const Dims dims = join(join(valid->dims, value->dims), otherwise->dims);
  const bool errors = valid->uncertain() || value->uncertain() || otherwise->uncertain();
  auto out = make(value->dtype, dims, errors);
  Nest nest(dims);
  for (const Dims& own : {dims, valid->dims, value->dims, otherwise->dims}) nest.operand(own);
  nest.collapse();
  nest.runs([&](const std::int64_t* at, std::int64_t n) {
    for (std::int64_t k = 0; k < n; ++k) {
      const Num v = valid->at(at[1] + k * nest.stride(1));
      Num r = v.i ? value->at(at[2] + k * nest.stride(2)) : otherwise->at(at[3] + k * nest.stride(3));
      if (v.err > 0) r.err = is_bool(value->dtype) ? 1 : infinity;
      out->set(at[0] + k, r);
    }
  });
  return seal(std::move(out));
}

Ref with_errors_of(const Ref& value, const Ref& other, double times) {
  if (!other->uncertain()) return value;
  const Dims dims = join(value->dims, other->dims);
  auto out = make(value->dtype, dims, true);
  Nest nest(dims);
  for (const Dims& own : {dims, value->dims, other->dims}) nest.operand(own);
  nest.collapse();
  nest.runs([&](const std::int64_t* at, std::int64_t n) {
    for (std::int64_t k = 0; k < n; ++k) {
      Num r = value->at(at[1] + k * nest.stride(1));
      const double e = other->err[at[2] + k * nest.stride(2)];
      r.err = is_bool(value->dtype) ? std::max(r.err, e) : r.err + times * e;
      out->set(at[0] + k, r);
    }
  });
  return seal(std::move(out));
}

Ref gather(const Ref& source, const std::vector<Gather>& by) {
  if (by.empty()) return source;
  Dims dims;
  std::vector<std::pair<Ref, std::int64_t>> indices;  // positions, stride in the source
  std::int64_t stride = 1;
  for (std::size_t d = source->dims.size(); d-- > 0;) {
    const Dim dim = source->dims[d];
    const auto found = std::find_if(by.begin(), by.end(), [&](const Gather& g) { return g.dim == dim.id; });
    const Ref index = found == by.end() ? iota(dim.id, 0, dim.size) : found->index;
    indices.emplace_back(index, stride);
    dims = join(dims, index->dims);
    stride *= dim.size;
  }
  bool errors = source->uncertain();
  for (const auto& [index, step] : indices) errors = errors || index->uncertain();
  auto out = make(source->dtype, dims, errors);
  Nest nest(dims);
  nest.operand(dims);
  for (const auto& [index, step] : indices) nest.operand(index->dims);
  nest.collapse();
  nest.runs([&](const std::int64_t* at, std::int64_t n) {
    for (std::int64_t k = 0; k < n; ++k) {
      std::int64_t from = 0;
      bool uncertain = false;
      for (std::size_t j = 0; j < indices.size(); ++j) {
        const std::int64_t position = at[j + 1] + k * nest.stride(j + 1);
        from += indices[j].first->i[position] * indices[j].second;
        uncertain = uncertain || (indices[j].first->uncertain() && indices[j].first->err[position] > 0);
      }
      Num r = source->at(from);
      if (uncertain) r.err = is_bool(source->dtype) ? 1 : infinity;
      out->set(at[0] + k, r);
    }
  });
  return seal(std::move(out));
}

}  // namespace cosmati::oracle
