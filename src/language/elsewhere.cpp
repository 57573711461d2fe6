// The tables. A name that is only misspelt needs no row: the nearest known name is suggested.
// SPDX-License-Identifier: Apache-2.0
#include "language/elsewhere.h"

namespace cosmati::language {
namespace {

struct Row {
  std::string_view name, hint;
};

constexpr Row functions[] = {
    {"relu", "write maximum(x, 0)"},
    {"fmax", "write maximum_num(x, y)"},
    {"fmin", "write minimum_num(x, y)"},
    {"clip", "write clamp(x, lo, hi)"},
    {"select", "write where(c, x, y)"},
    {"ifelse", "write where(c, x, y)"},
    {"fabs", "write abs(x)"},
    {"isnan", "write is_nan(x)"},
    {"isinf", "write is_inf(x)"},
    {"isfinite", "write not (is_nan(x) or is_inf(x))"},
    {"ln", "write log(x)"},
    {"log10", "write log(x) / log(10.0)"},
    {"tan", "write sin(x) / cos(x)"},
    {"logistic", "write sigmoid(x)"},
    {"erfc", "write 1 - erf(x)"},
    {"square", "write x * x"},
    {"power", "write pow(x, y)"},
    {"reciprocal", "write 1 / x"},
    {"inverse", "write 1 / x"},
    {"var", "mean_var gives both: mu, v = mean_var(x, col)"},
    {"variance", "mean_var gives both: mu, v = mean_var(x, col)"},
    {"std", "the root of the variance: mu, v = mean_var(x, col), then sqrt(v)"},
    {"stddev", "the root of the variance: mu, v = mean_var(x, col), then sqrt(v)"},
    {"average", "write mean(x, col)"},
    {"prod", "write product(x, col)"},
    {"count", "write sum(i32(c), col)"},
    {"norm", "write sqrt(sum(x * x, col))"},
    {"softmax", "write e = exp(x - max(x, col)), then e / sum(e, col)"},
    {"dot", "write contract(x, y, k)"},
    {"matmul", "write contract(x, y, k)"},
    {"mm", "write contract(x, y, k)"},
    {"bmm", "write contract(x, y, k)"},
    {"einsum", "write contract(x, y, k)"},
    {"cumsum", "a prefix is a stream: stream t carry s = 0 { ... next s = s + x }"},
    {"cumprod", "a prefix is a stream: stream t carry p = 1 { ... next p = p * x }"},
    {"cummax", "a prefix is a stream: stream t carry m = -inf { ... next m = maximum(m, x) }"},
    {"scan", "a prefix is a stream: stream t carry s = 0 { ... next s = s + x }"},
    {"transpose", "name the axes of the store in the other order: y[col, row] = x"},
    {"permute", "name the axes of the store in the other order: y[col, row] = x"},
    {"reshape", "a composite dimension is two axes: x: f32[(g, r)]"},
    {"gather", "index with the value: x[i, j]"},
    {"take", "index with the value: x[i, j]"},
    {"roll", "replace the axis: x[col := (col + 1) % extent(col)]"},
    {"shift", "replace the axis: x[col := col - 1] else 0"},
    {"flip", "replace the axis: x[col := extent(col) - 1 - col]"},
    {"len", "write extent(col), of an axis"},
    {"size", "write extent(col), of an axis"},
    {"shape", "write extent(col), of an axis"},
    {"arange", "an axis used as a value is its index"},
    {"iota", "an axis used as a value is its index"},
    {"range", "an axis used as a value is its index"},
    {"float", "a type's name is a cast: f32(x)"},
    {"int", "a type's name is a cast: i32(x)"},
    {"double", "a type's name is a cast: f64(x)"},
    {"half", "a type's name is a cast: f16(x)"},
    {"cast", "a type's name is a cast: f32(x)"},
    {"astype", "a type's name is a cast: f32(x)"},
    {"convert", "a type's name is a cast: f32(x)"},
    {"bitcast", "write bits_f32(x) or bits_u32(x)"},
};

constexpr Row values[] = {
    {"True", "write true"},    {"TRUE", "write true"},    {"False", "write false"},      {"FALSE", "write false"},
    {"INFINITY", "write inf"}, {"Inf", "write inf"},      {"infinity", "write inf"},     {"NaN", "write nan"},
    {"NAN", "write nan"},      {"NEG_INF", "write -inf"}, {"pi", "write 3.14159265359"}, {"PI", "write 3.14159265359"},
};

constexpr Row pairs[] = {
    {"max", "maximum(x, y)"},
    {"min", "minimum(x, y)"},
    {"max_num", "maximum_num(x, y)"},
    {"min_num", "minimum_num(x, y)"},
};

constexpr Row symbols[] = {
    {"?", "write where(c, x, y)"},
    {"@", "write contract(x, y, k)"},
    {"\"", "names are written without quotes"},
    {"'", "names are written without quotes"},
};

template <std::size_t N>
std::string_view hint_of(const Row (&table)[N], std::string_view name) {
  for (const Row& row : table)
    if (row.name == name) return row.hint;
  return {};
}

}  // namespace

std::string_view function_elsewhere(std::string_view name) { return hint_of(functions, name); }
std::string_view value_elsewhere(std::string_view name) { return hint_of(values, name); }
std::string_view pair_of(std::string_view reducer) { return hint_of(pairs, reducer); }
std::string_view symbol_elsewhere(char c) { return hint_of(symbols, std::string_view(&c, 1)); }

}  // namespace cosmati::language
