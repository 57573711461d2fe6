// Scopes: what a name stands for, and the errors of names declared twice.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/format.h>

#include "language/elaborate.h"
#include "support/overloaded.h"

namespace cosmati::language {
namespace {

std::string kind_of(const Entity& entity) {
  return std::visit(
      support::overloaded{[](ir::AxisId) { return "an axis"; }, [](const Pack&) { return "an axis pack"; },
                          [](ir::TensorId) { return "a parameter"; }, [](ir::ValueId) { return "a value or parameter"; }},
      entity);
}

}  // namespace

const Scope::Entry* Scope::find(std::string_view name) const {
  auto at = entries_.find(name);
  return at == entries_.end() ? nullptr : &at->second;
}

void Scope::set(std::string_view name, Entity entity, Pos pos) {
  if (entries_.insert_or_assign(name, Entry{std::move(entity), pos}).second) added_.push_back(name);
}

void Scope::check_free(const Name& name, const std::string& hint) const {
  if (const Entry* entry = find(name.text))
    throw Error(ErrorCode::redefined, where(name.pos), fmt::format("{} is already {} here", name.text, kind_of(entry->entity)),
                hint.empty() ? fmt::format("choose another name, for example {}_", name.text) : hint,
                fmt::format("It is declared at line {}", entry->pos.line));
}

void Scope::declare(const Name& name, Entity entity) {
  check_free(name);
  set(name.text, std::move(entity), name.pos);
}

void Scope::rewind(std::size_t mark) {
  for (; added_.size() > mark; added_.pop_back()) entries_.erase(added_.back());
}

std::vector<std::string> Scope::names() const {
  std::vector<std::string> result;
  for (const auto& [name, entry] : entries_) result.emplace_back(name);
  std::sort(result.begin(), result.end());
  return result;
}

std::vector<std::string> Scope::axes() const {
  std::vector<std::string> result;
  for (const auto& [name, entry] : entries_)
    if (std::holds_alternative<ir::AxisId>(entry.entity)) result.emplace_back(name);
  std::sort(result.begin(), result.end());
  return result;
}

}  // namespace cosmati::language
