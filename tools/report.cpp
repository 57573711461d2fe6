// The tool's output. Everything a command finds out goes through here, so that lines and JSON say the same.
// SPDX-License-Identifier: Apache-2.0
#include "tools/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <new>

#include "ops/ops.h"
#include "tools/npy.h"

namespace cosmati::tools {
namespace {

constexpr int schema = 1;

nlohmann::ordered_json error_object(const std::string& code, const Where& where, const std::string& what,
                                    const std::string& origin, const std::string& hint) {
  return {{"code", code}, {"file", where.file}, {"line", where.line}, {"column", where.column},
          {"what", what}, {"origin", origin},   {"hint", hint}};
}

}  // namespace

void Report::line(const std::string& text) const {
  if (json_) return;
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fputc('\n', stdout);
}

void Report::note(const std::string& text) const {
  if (json_) return;
  std::fflush(stdout);
  std::fputs(("cosmati: note: " + text + "\n").c_str(), stderr);
}

void Report::failed(Exit code) { code_ = std::max<int>(code_, code); }

int Report::error(std::exception_ptr problem) {
  std::string text;
  Exit code = internal_error;
  try {
    std::rethrow_exception(problem);
  } catch (const Error& e) {
    code = e.code == ErrorCode::backend_absent ? no_backend : wrong_input;
    text = e.what();
    errors_.push_back(error_object(std::string(name(e.code)), e.where, e.message, e.origin, e.hint));
  } catch (const std::bad_alloc&) {
    code = wrong_input;
    text = "bad_argument: not enough memory for these arguments";
    errors_.push_back(error_object("bad_argument", {}, "not enough memory for these arguments", {}, {}));
  } catch (const std::exception& e) {
    text = fmt::format("internal error (please report it): {}", e.what());
    errors_.push_back(error_object("internal", {}, e.what(), {}, {}));
  }
  std::fflush(stdout);
  std::fputs((text + "\n").c_str(), stderr);
  failed(code);
  return code;
}

int Report::finish() {
  if (json_) {
    nlohmann::ordered_json all = {{"schema", schema}, {"ok", code_ == done}, {"errors", errors_}};
    all.update(object_);
    // Text of a user may hold any bytes; what is not UTF-8 is replaced.
    const std::string text = all.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
    std::fwrite(text.data(), 1, text.size(), stdout);
  }
  if ((std::fflush(stdout) != 0 || std::ferror(stdout)) && code_ == done) {
    std::fputs(fmt::format("bad_file: the standard output cannot be written: {}\n", std::strerror(errno)).c_str(), stderr);
    code_ = wrong_input;
  }
  return code_;
}

Summary summarise(const TensorView& view) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Summary s{nan, nan, nan, 0};
  double sum = 0;
  std::int64_t counted = 0;
  for_each_element(view, [&](const char* element) {
    const ops::Scalar scalar = ops::load(view.dtype, element);
    const double v = is_float(view.dtype) ? scalar.f : static_cast<double>(scalar.i);
    if (std::isnan(v)) {
      ++s.nan;
      return;
    }
    s.min = counted ? std::min(s.min, v) : v;
    s.max = counted ? std::max(s.max, v) : v;
    sum += v;
    ++counted;
  });
  if (counted) s.mean = sum / static_cast<double>(counted);
  return s;
}

std::string type_text(const TensorView& view) { return fmt::format("{}[{}]", name(view.dtype), fmt::join(view.shape, ",")); }

std::string index_text(const std::vector<std::int64_t>& at) { return fmt::format("({})", fmt::join(at, ", ")); }

nlohmann::ordered_json number(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

}  // namespace cosmati::tools
