// Reference values of the scalar operations: the expressions of ops.def, compiled once for float, for double and for integers.
// Rounding is to nearest even and contraction is off (see CMakeLists.txt), so each F expression rounds where the row says.
// SPDX-License-Identifier: Apache-2.0
#include "ops/ops.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "support/check.h"

namespace cosmati::ops {
namespace {

constexpr OpInfo op_rows[] = {
#define OP(name, arity, typing, kind, ulp, error, floating, integer, documentation) \
  {#name,                                                                           \
   arity,                                                                           \
   Typing::typing,                                                                  \
   Kind::kind,                                                                      \
   ulp,                                                                             \
   ErrorRule::error,                                                                \
   std::string_view(#floating) != "none",                                           \
   std::string_view(#integer) != "none",                                            \
   documentation},
#include <cosmati/ops.def>
#undef OP
    {"cast", 1, Typing::numeric, Kind::primitive, 0.5, ErrorRule::corners, true, true, "dtype(x): a conversion"},
    {"bits", 1, Typing::numeric, Kind::primitive, 0, ErrorRule::discrete, true, true, "bits_f32(x), bits_u32(x): the same bits"},
};
static_assert(sizeof(op_rows) / sizeof(op_rows[0]) == op_count);

// Stands where a row has no expression for a class of types; the typing rules never ask for it.
struct None {
  template <class T>
  operator T() const {
    throw InternalError("an operation was evaluated on a class of types that its row refuses");
  }
};
constexpr None none;

// ---- the helpers that rows name ----
std::uint64_t u64(std::int64_t a) { return static_cast<std::uint64_t>(a); }
std::int64_t i64(std::uint64_t a) { return static_cast<std::int64_t>(a); }
std::int64_t wrap_neg(std::int64_t a) { return i64(0 - u64(a)); }
std::int64_t wrap_add(std::int64_t a, std::int64_t b) { return i64(u64(a) + u64(b)); }
std::int64_t wrap_sub(std::int64_t a, std::int64_t b) { return i64(u64(a) - u64(b)); }
std::int64_t wrap_mul(std::int64_t a, std::int64_t b) { return i64(u64(a) * u64(b)); }

std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return wrap_neg(a);
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}
std::int64_t floor_mod(std::int64_t a, std::int64_t b) {
  if (b == 0 || b == -1) return 0;
  const std::int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
std::int64_t clamp_int(std::int64_t a, std::int64_t lo, std::int64_t hi) { return std::min(std::max(a, lo), hi); }
std::int64_t shift_left(std::int64_t a, std::int64_t n, int bits) { return i64(u64(a) << (n & (bits - 1))); }
std::int64_t shift_right(std::int64_t a, std::int64_t n, int bits) { return a >> (n & (bits - 1)); }

// Of two zeros the negative one is the smaller.
template <class F>
bool below(F a, F b) {
  return a < b || (a == b && std::signbit(a) && !std::signbit(b));
}
template <class F>
F num_min(F a, F b) {
  if (std::isnan(a)) return b;
  if (std::isnan(b)) return a;
  return below(b, a) ? b : a;
}
template <class F>
F num_max(F a, F b) {
  if (std::isnan(a)) return b;
  if (std::isnan(b)) return a;
  return below(a, b) ? b : a;
}
template <class F>
F nan_min(F a, F b) {
  return std::isnan(a) ? a : std::isnan(b) ? b : num_min(a, b);
}
template <class F>
F nan_max(F a, F b) {
  return std::isnan(a) ? a : std::isnan(b) ? b : num_max(a, b);
}

template <class D>
D scaled(D x, D n) {
  if (std::isnan(n)) return n;
  if (std::isinf(n)) return n > 0 ? x * n : x * 0;
  const D most = 10'000;  // beyond the exponents of every type
  return std::scalbn(x, static_cast<int>(std::clamp(std::floor(n), -most, most)));
}

// The rows on floats: F is the type, D the wider type that functions are computed in. Both give doubles, which hold every F.
template <class F, class D>
double on_floats(Op op, F a, F b, F c) {
  [[maybe_unused]] auto exp_difference = [](F x, F m) {
    return x == -std::numeric_limits<F>::infinity() ? F(0) : F(std::exp(D(F(x - m))));
  };
  switch (op) {
#define OP(name, arity, typing, kind, ulp, error, floating, integer, documentation) \
  case Op::name:                                                                    \
    return static_cast<double>(floating);
#include <cosmati/ops.def>
#undef OP
    case Op::cast:
    case Op::bits:
      break;
  }
  throw InternalError("cast and bits have their own functions");
}

std::int64_t on_integers(Op op, std::int64_t a, std::int64_t b, std::int64_t c, int bits) {
  switch (op) {
#define OP(name, arity, typing, kind, ulp, error, floating, integer, documentation) \
  case Op::name:                                                                    \
    return static_cast<std::int64_t>(integer);
#include <cosmati/ops.def>
#undef OP
    case Op::cast:
    case Op::bits:
      break;
  }
  throw InternalError("cast and bits have their own functions");
}

// ---- float formats ----
constexpr int bias_of(const DTypeInfo& t) { return (1 << (t.exponent_bits - 1)) - 1; }
constexpr bool has_infinity(DType t) { return t != DType::f8e4m3_; }

double largest_of(DType t) {
  if (t == DType::f8e4m3_) return 448;
  const DTypeInfo& f = cosmati::info(t);
  return std::ldexp(2 - std::ldexp(1.0, -f.mantissa_bits), bias_of(f));
}

std::uint32_t encode(DType t, double value) {
  const DTypeInfo& f = cosmati::info(t);
  const int m = f.mantissa_bits;
  const std::uint32_t sign = std::signbit(value) ? 1u << (m + f.exponent_bits) : 0;
  const std::uint32_t top = ((1u << f.exponent_bits) - 1) << m;
  if (std::isnan(value)) return sign | top | (has_infinity(t) ? 1u << (m - 1) : (1u << m) - 1);
  if (std::isinf(value)) return sign | top;
  if (value == 0) return sign;
  int exponent = std::ilogb(value);
  const int smallest = 1 - bias_of(f);
  const bool normal = exponent >= smallest;
  if (!normal) exponent = smallest;
  const auto steps = static_cast<std::uint32_t>(std::ldexp(std::fabs(value), m - exponent));
  return sign | (normal ? (static_cast<std::uint32_t>(exponent - smallest) << m) + steps : steps);
}

double decode(DType t, std::uint32_t bits) {
  const DTypeInfo& f = cosmati::info(t);
  const int m = f.mantissa_bits;
  const std::uint32_t mantissa = bits & ((1u << m) - 1);
  const std::uint32_t top = (1u << f.exponent_bits) - 1;
  const std::uint32_t exponent = (bits >> m) & top;
  const double sign = bits >> (m + f.exponent_bits) ? -1.0 : 1.0;
  if (has_infinity(t) ? exponent == top : exponent == top && mantissa == (1u << m) - 1)
    return std::copysign(has_infinity(t) && mantissa == 0 ? HUGE_VAL : std::nan(""), sign);
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias_of(f) - m);
  return sign * std::ldexp(mantissa + (1u << m), static_cast<int>(exponent) - bias_of(f) - m);
}

double round_narrow(DType t, double value) {
  const DTypeInfo& f = cosmati::info(t);
  if (!std::isfinite(value)) return std::isinf(value) && !has_infinity(t) ? std::copysign(std::nan(""), value) : value;
  const double magnitude = std::fabs(value);
  const int smallest = 1 - bias_of(f);
  double rounded;
  if (magnitude < std::ldexp(1.0, smallest)) {
    // Adding 2^52 units of the last subnormal place makes the addition itself round there.
    const double shift = std::ldexp(1.0, smallest - f.mantissa_bits + 52);
    rounded = (magnitude + shift) - shift;
  } else {
    const int dropped = 52 - f.mantissa_bits;
    auto bits = std::bit_cast<std::uint64_t>(magnitude);
    bits += (std::uint64_t{1} << (dropped - 1)) - 1 + ((bits >> dropped) & 1);
    rounded = std::bit_cast<double>(bits >> dropped << dropped);
  }
  if (rounded > largest_of(t)) rounded = has_infinity(t) ? HUGE_VAL : std::nan("");
  return std::copysign(rounded, value);
}

// A double that rounds to every type of at most 50 mantissa bits as the integer itself does: the bits that do not fit are
// folded into the last one kept.
double round_to_odd(std::int64_t value) {
  const std::uint64_t magnitude = value < 0 ? 0 - u64(value) : u64(value);
  if (magnitude >> 53 == 0) return static_cast<double>(value);
  const std::uint64_t kept = (magnitude >> 11) | ((magnitude & 0x7ff) != 0 ? 1 : 0);
  return std::copysign(std::ldexp(static_cast<double>(kept), 11), value < 0 ? -1.0 : 1.0);
}

std::int64_t lowest_int(DType t) { return is_signed(t) ? -(std::int64_t{1} << (8 * byte_size(t) - 2)) * 2 : 0; }
std::int64_t highest_int(DType t) {
  if (t == DType::i64_) return std::numeric_limits<std::int64_t>::max();
  return (std::int64_t{1} << (8 * byte_size(t) - (is_signed(t) ? 1 : 0))) - 1;
}

std::int64_t truncate(DType t, double value) {
  if (std::isnan(value)) return 0;
  const std::int64_t lo = lowest_int(t), hi = highest_int(t);
  if (value <= static_cast<double>(lo)) return lo;
  if (value >= static_cast<double>(hi)) return hi;  // of i64 the double is 2^63, which is above the type
  return static_cast<std::int64_t>(value);
}

template <class T>
T read(const void* element) {
  T value;
  std::memcpy(&value, element, sizeof value);
  return value;
}
template <class T, class V>
void write(void* element, V value) {
  const T converted = static_cast<T>(value);
  std::memcpy(element, &converted, sizeof converted);
}

}  // namespace

const OpInfo& info(Op op) { return op_rows[static_cast<int>(op)]; }
std::string_view name(Op op) { return info(op).name; }

std::optional<Op> op_from_name(std::string_view text) {
  for (int i = 0; i < op_count; ++i)
    if (op_rows[i].name == text) return static_cast<Op>(i);
  return std::nullopt;
}

Scalar reference(Op op, DType argument, DType result, const Scalar* args) {
  const int arity = info(op).arity;
  Scalar out;
  if (!is_float(argument)) {
    std::int64_t v[3] = {};
    for (int k = 0; k < arity; ++k) v[k] = args[k].i;
    out.i = wrap_to(result, on_integers(op, v[0], v[1], v[2], 8 * byte_size(argument)));
    return out;
  }
  double v[3] = {};
  for (int k = 0; k < arity; ++k) v[k] = args[k].f;
  if (op == Op::where) v[0] = args[0].i != 0 ? 1 : 0;
  const double value = argument == DType::f64_ ? on_floats<double, long double>(op, v[0], v[1], v[2])
                                               : on_floats<float, double>(op, static_cast<float>(v[0]), static_cast<float>(v[1]),
                                                                          static_cast<float>(v[2]));
  if (is_float(result))
    out.f = round_to(result, value);
  else
    out.i = value != 0;
  return out;
}

double reference_wide(Op op, const double* args) {
  const OpInfo& row = info(op);
  double v[3] = {};
  for (int k = 0; k < row.arity; ++k) v[k] = args[k];
  if (row.on_floats) return on_floats<double, double>(op, v[0], v[1], v[2]);
  auto whole = [](double x) { return truncate(DType::i64_, x); };
  return static_cast<double>(on_integers(op, whole(v[0]), whole(v[1]), whole(v[2]), 64));
}

double round_to(DType t, double value) {
  COSMATI_CHECK(is_float(t), "{} does not round", cosmati::name(t));
  if (t == DType::f64_) return value;
  if (t == DType::f32_) return static_cast<float>(value);
  return round_narrow(t, value);
}

std::int64_t wrap_to(DType t, std::int64_t value) {
  switch (t) {
    case DType::bool_:
      return value != 0;
    case DType::i8_:
      return static_cast<std::int8_t>(value);
    case DType::i16_:
      return static_cast<std::int16_t>(value);
    case DType::i32_:
      return static_cast<std::int32_t>(value);
    case DType::u8_:
      return static_cast<std::uint8_t>(value);
    case DType::u16_:
      return static_cast<std::uint16_t>(value);
    case DType::u32_:
      return static_cast<std::uint32_t>(value);
    default:
      return value;
  }
}

Scalar cast(DType from, DType to, Scalar value) {
  Scalar out;
  if (is_float(to))
    out.f = is_float(from)      ? round_to(to, value.f)
            : to == DType::f64_ ? static_cast<double>(value.i)
                                : round_to(to, round_to_odd(value.i));
  else if (is_bool(to))
    out.i = is_float(from) ? value.f != 0 : value.i != 0;
  else
    out.i = is_float(from) ? truncate(to, value.f) : wrap_to(to, value.i);
  return out;
}

Scalar reinterpret(DType from, DType to, Scalar value) {
  COSMATI_CHECK(byte_size(from) == byte_size(to), "bits of {} as {}", cosmati::name(from), cosmati::name(to));
  unsigned char bytes[8];
  store(from, bytes, value);
  return load(to, bytes);
}

Scalar load(DType t, const void* element) {
  Scalar out;
  switch (t) {
    case DType::bool_:
      out.i = read<std::uint8_t>(element) != 0;
      break;
    case DType::i8_:
      out.i = read<std::int8_t>(element);
      break;
    case DType::i16_:
      out.i = read<std::int16_t>(element);
      break;
    case DType::i32_:
      out.i = read<std::int32_t>(element);
      break;
    case DType::i64_:
      out.i = read<std::int64_t>(element);
      break;
    case DType::u8_:
      out.i = read<std::uint8_t>(element);
      break;
    case DType::u16_:
      out.i = read<std::uint16_t>(element);
      break;
    case DType::u32_:
      out.i = read<std::uint32_t>(element);
      break;
    case DType::f32_:
      out.f = read<float>(element);
      break;
    case DType::f64_:
      out.f = read<double>(element);
      break;
    case DType::f16_:
      out.f = decode(t, read<std::uint16_t>(element));
      break;
    case DType::bf16_:
      out.f = std::bit_cast<float>(static_cast<std::uint32_t>(read<std::uint16_t>(element)) << 16);
      break;
    case DType::f8e4m3_:
    case DType::f8e5m2_:
      out.f = decode(t, read<std::uint8_t>(element));
      break;
  }
  return out;
}

void store(DType t, void* element, Scalar value) {
  switch (t) {
    case DType::bool_:
      write<std::uint8_t>(element, value.i != 0);
      break;
    case DType::i8_:
    case DType::u8_:
      write<std::uint8_t>(element, value.i);
      break;
    case DType::i16_:
    case DType::u16_:
      write<std::uint16_t>(element, value.i);
      break;
    case DType::i32_:
    case DType::u32_:
      write<std::uint32_t>(element, value.i);
      break;
    case DType::i64_:
      write<std::int64_t>(element, value.i);
      break;
    case DType::f32_:
      write<float>(element, value.f);
      break;
    case DType::f64_:
      write<double>(element, value.f);
      break;
    case DType::f16_:
    case DType::bf16_:
      write<std::uint16_t>(element, encode(t, value.f));
      break;
    case DType::f8e4m3_:
    case DType::f8e5m2_:
      write<std::uint8_t>(element, encode(t, value.f));
      break;
  }
}

}  // namespace cosmati::ops
