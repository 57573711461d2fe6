// The texts of errors: codes and meanings come from errors.def.
// SPDX-License-Identifier: Apache-2.0
#include <cosmati/error.h>

namespace cosmati {
namespace {

struct Row {
  std::string_view name, meaning;
};
constexpr Row rows[] = {
#define ERROR(code, meaning) {#code, meaning},
#include <cosmati/errors.def>
#undef ERROR
};

std::string compose(ErrorCode code, const Where& where, const std::string& message, const std::string& hint,
                    const std::string& origin) {
  std::string text;
  if (!where.file.empty()) text += where.file + ":";
  if (where.line > 0) text += std::to_string(where.line) + ":" + std::to_string(where.column) + ":";
  if (!text.empty()) text += " ";
  text += std::string(name(code)) + ": " + message;
  auto sentence = [&](const std::string& s) {
    if (s.empty()) return;
    if (text.back() != '.') text += ".";
    text += " " + s;
  };
  sentence(origin);
  if (!hint.empty()) sentence("Hint: " + hint);
  return text;
}

}  // namespace

std::string_view name(ErrorCode code) { return rows[static_cast<int>(code)].name; }
std::string_view meaning(ErrorCode code) { return rows[static_cast<int>(code)].meaning; }

Error::Error(ErrorCode code, Where where, std::string message, std::string hint, std::string origin)
    : std::runtime_error(compose(code, where, message, hint, origin)),
      code(code),
      where(std::move(where)),
      message(std::move(message)),
      hint(std::move(hint)),
      origin(std::move(origin)) {}

}  // namespace cosmati
