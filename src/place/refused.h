// Refused: why a candidate is not legal, as data: the reason (a row of reasons.def), where, and a witness that shows it. The
// answer of a rule is what it derived, or a Refused; unknown is refused.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include <cosmati/error.h>

namespace cosmati::place {

enum class Reason : std::uint8_t {
#define REASON(name, sentence, remedy) name,
#include "place/reasons.def"
#undef REASON
};
std::string_view name(Reason reason);
std::string_view sentence(Reason reason);
std::string_view remedy(Reason reason);

struct Refused {
  Reason reason;
  std::string where;    // axis, resource, buffer, operand or knob
  std::string witness;  // the numbers that show it
  Where at = {};        // in the program's text, where that is known
};
// `where: sentence: witness`, without the parts that are empty.
std::string message(const Refused& refused);
// `name: sentence: where: witness. Legal: remedy`
std::string print(const Refused& refused);

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : is_(std::move(value)) {}            // NOLINT: a rule returns what it derived
  Result(Refused refused) : is_(std::move(refused)) {}  // NOLINT: or why it did not
  explicit operator bool() const { return is_.index() == 0; }
  const T& operator*() const& { return std::get<0>(is_); }
  T operator*() && { return std::get<0>(std::move(is_)); }
  const T* operator->() const { return &std::get<0>(is_); }
  const Refused& refused() const { return std::get<1>(is_); }

 private:
  std::variant<T, Refused> is_;
};
// A yes that says nothing more.
struct Legal {};
using Verdict = Result<Legal>;

}  // namespace cosmati::place
