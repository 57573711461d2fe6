// The one exception users see, and the one that reports our own bugs. The codes are the rows of errors.def.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include <cosmati/export.h>

namespace cosmati {

enum class ErrorCode : std::uint8_t {
#define ERROR(code, meaning) code,
#include <cosmati/errors.def>
#undef ERROR
};

COSMATI_API std::string_view name(ErrorCode code);
COSMATI_API std::string_view meaning(ErrorCode code);

// A place in the user's text or C++ source. line and column start at 1; 0 means unknown.
struct Where {
  std::string file;
  int line = 0;
  int column = 0;
  bool operator==(const Where&) const = default;
};

// The user's program, options or machine are wrong. what() is `file:line:column: code: message. origin Hint: hint`.
// message: what is wrong, with the user's names. origin: where the cause entered (may be empty). hint: what would be legal.
class COSMATI_API Error : public std::runtime_error {
 public:
  Error(ErrorCode code, Where where, std::string message, std::string hint = {}, std::string origin = {});
  ErrorCode code;
  Where where;
  std::string message;
  std::string hint;
  std::string origin;
};

// A bug of Cosmati itself: names the place and carries a dump of the IR where there is one.
class COSMATI_API InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

}  // namespace cosmati
