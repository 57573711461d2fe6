// The value of a size expression at launch: constants and integer params only, by the reference operations. A product that does
// not fit is as large as can be: it counts elements, and no memory has so many.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <tuple>

#include "kernel/kernel.h"
#include "kernel/launch.h"
#include "support/check.h"
#include "support/overloaded.h"

namespace cosmati::kernel {

std::int64_t evaluate(const Kernel& k, ExprId e, const std::vector<std::int64_t>& params) {
  const Expr& x = k[e];
  COSMATI_CHECK(!is_float(x.dtype), "a size of {} has a value of type {}", k.name, name(x.dtype));
  if (const Const* c = std::get_if<Const>(&x.node)) return c->i;
  if (const ParamRef* p = std::get_if<ParamRef>(&x.node)) {
    COSMATI_CHECK(p->param.index < params.size(), "a launch of {} without param {}", k.name, k[p->param].name);
    return params[p->param.index];
  }
  const Apply* a = std::get_if<Apply>(&x.node);
  COSMATI_CHECK(a && a->args.size() <= 3, "a size of {} is not an expression of params", k.name);
  ops::Scalar args[3];
  for (std::size_t i = 0; i < a->args.size(); ++i) args[i].i = evaluate(k, a->args[i], params);
  const DType argument = k[a->args.back()].dtype;
  if (a->op == ops::Op::cast) return ops::cast(argument, x.dtype, args[0]).i;
  if (a->op == ops::Op::bits) return ops::reinterpret(argument, x.dtype, args[0]).i;
  if (std::int64_t product = 0; a->op == ops::Op::mul && __builtin_mul_overflow(args[0].i, args[1].i, &product))
    return std::numeric_limits<std::int64_t>::max();
  return ops::reference(a->op, argument, x.dtype, args).i;
}

bool meets_conditions(const Kernel& k, const std::vector<std::int64_t>& params) {
  return std::all_of(k.conditions.begin(), k.conditions.end(), [&](ExprId e) { return evaluate(k, e, params) != 0; });
}

std::int64_t param_bits(DType t, const ops::Scalar& scalar) {
  if (!is_float(t)) return scalar.i;
  std::int64_t bits = 0;
  ops::store(t, &bits, scalar);
  return bits;
}

bool Shape::operator<(const Shape& other) const {
  return std::tie(extents, strides, scalars, unaligned) < std::tie(other.extents, other.strides, other.scalars, other.unaligned);
}

std::vector<std::int64_t> params_of(const Kernel& k, const Shape& shape) {
  std::vector<std::int64_t> params;
  for (const Param& p : k.params) switch (p.source) {
      case Param::Source::extent:
        params.push_back(shape.extents[p.a]);
        break;
      case Param::Source::stride:
        params.push_back(shape.strides[p.a][p.b]);
        break;
      case Param::Source::scalar:
        params.push_back(shape.scalars[p.a]);
        break;
      case Param::Source::unaligned:
        params.push_back(!shape.unaligned.empty() && shape.unaligned[p.a]);
        break;
    }
  return params;
}

}  // namespace cosmati::kernel
