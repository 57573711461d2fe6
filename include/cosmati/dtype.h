// Element types. The facts are the rows of dtypes.def; everything here reads them.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace cosmati {

enum class DType : std::uint8_t {
#define DTYPE(name, bytes, klass, exponent, mantissa) name##_,
#include <cosmati/dtypes.def>
#undef DTYPE
};

enum class DTypeClass : std::uint8_t { boolean, signed_int, unsigned_int, floating };

struct DTypeInfo {
  std::string_view name;
  int bytes;
  DTypeClass klass;
  int exponent_bits;
  int mantissa_bits;
};

inline constexpr DTypeInfo dtype_table[] = {
#define DTYPE(name, bytes, klass, exponent, mantissa) {#name, bytes, DTypeClass::klass, exponent, mantissa},
#include <cosmati/dtypes.def>
#undef DTYPE
};
inline constexpr int dtype_count = sizeof(dtype_table) / sizeof(dtype_table[0]);

constexpr const DTypeInfo& info(DType t) { return dtype_table[static_cast<int>(t)]; }
constexpr std::string_view name(DType t) { return info(t).name; }
constexpr int byte_size(DType t) { return info(t).bytes; }
constexpr bool is_float(DType t) { return info(t).klass == DTypeClass::floating; }
constexpr bool is_bool(DType t) { return info(t).klass == DTypeClass::boolean; }
constexpr bool is_signed(DType t) { return info(t).klass == DTypeClass::signed_int; }
constexpr bool is_int(DType t) { return is_signed(t) || info(t).klass == DTypeClass::unsigned_int; }

// The type with this name, or nothing.
constexpr std::optional<DType> dtype_from_name(std::string_view text) {
  for (int i = 0; i < dtype_count; ++i)
    if (dtype_table[i].name == text) return static_cast<DType>(i);
  return std::nullopt;
}

// The type that arithmetic on `t` is carried out in: f16, bf16 and f8 compute as f32; i8, i16, u8, u16 as i32.
constexpr DType compute_type(DType t) {
  if (is_float(t)) return t == DType::f64_ ? t : DType::f32_;
  if (is_int(t) && byte_size(t) < 4) return DType::i32_;
  return t;
}

// The types as values: TensorView{p, bf16, {8, 32}}, input<f32>("x", ...). (bool is a keyword: `boolean`.)
inline constexpr DType boolean = DType::bool_, i8 = DType::i8_, i16 = DType::i16_, i32 = DType::i32_, i64 = DType::i64_,
                       u8 = DType::u8_, u16 = DType::u16_, u32 = DType::u32_, f16 = DType::f16_, bf16 = DType::bf16_,
                       f32 = DType::f32_, f64 = DType::f64_, f8e4m3 = DType::f8e4m3_, f8e5m2 = DType::f8e5m2_;

}  // namespace cosmati
