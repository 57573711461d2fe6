// One isl context per question, with a cap on its work: a question that is too hard has no answer.
// SPDX-License-Identifier: Apache-2.0
#include "prove/isl.h"

#include <isl/ctx.h>
#include <isl/options.h>
#include <isl/set.h>

namespace cosmati::prove {

namespace {
constexpr unsigned long max_operations = 100000;

isl_ctx* limited_context() {
  isl_ctx* ctx = isl_ctx_alloc();
  isl_options_set_on_error(ctx, ISL_ON_ERROR_CONTINUE);
  isl_ctx_set_max_operations(ctx, max_operations);
  return ctx;
}

std::optional<bool> answer(isl_ctx* ctx, isl_bool b) {
  isl_ctx_free(ctx);
  if (b == isl_bool_error) return std::nullopt;
  return b == isl_bool_true;
}
}  // namespace

std::optional<bool> isl_empty(const std::string& set) {
  isl_ctx* ctx = limited_context();
  isl_set* s = isl_set_read_from_str(ctx, set.c_str());
  const isl_bool empty = s ? isl_set_is_empty(s) : isl_bool_error;
  isl_set_free(s);
  return answer(ctx, empty);
}

std::optional<bool> isl_covered(const std::string& whole, const std::vector<std::string>& parts) {
  isl_ctx* ctx = limited_context();
  isl_set* w = isl_set_read_from_str(ctx, whole.c_str());
  isl_set* u = nullptr;
  for (const std::string& part : parts) {
    isl_set* p = isl_set_read_from_str(ctx, part.c_str());
    u = u ? isl_set_union(u, p) : p;
  }
  const isl_bool covered = w && u ? isl_set_is_subset(w, u) : isl_bool_error;
  isl_set_free(w);
  isl_set_free(u);
  return answer(ctx, covered);
}

}  // namespace cosmati::prove
