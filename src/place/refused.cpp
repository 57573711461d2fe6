// The texts of refusals, read from reasons.def.
// SPDX-License-Identifier: Apache-2.0
#include "place/refused.h"

namespace cosmati::place {
namespace {

struct Row {
  std::string_view name, sentence, remedy;
};
constexpr Row rows[] = {
#define REASON(name, sentence, remedy) {#name, sentence, remedy},
#include "place/reasons.def"
#undef REASON
};

}  // namespace

std::string_view name(Reason reason) { return rows[static_cast<int>(reason)].name; }
std::string_view sentence(Reason reason) { return rows[static_cast<int>(reason)].sentence; }
std::string_view remedy(Reason reason) { return rows[static_cast<int>(reason)].remedy; }

std::string message(const Refused& refused) {
  std::string text = refused.where.empty() ? "" : refused.where + ": ";
  text += sentence(refused.reason);
  return refused.witness.empty() ? text : text + ": " + refused.witness;
}

std::string print(const Refused& refused) {
  std::string text = std::string(name(refused.reason)) + ": " + std::string(sentence(refused.reason));
  if (!refused.where.empty()) text += ": " + refused.where;
  if (!refused.witness.empty()) text += ": " + refused.witness;
  return text + ". Legal: " + std::string(remedy(refused.reason));
}

}  // namespace cosmati::place
