// Printing and shrinking steps of program trees.
// SPDX-License-Identifier: Apache-2.0
#include "fuzz/tree.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace cosmati::fuzz {
namespace {

using Visit = std::function<void(const Tree&)>;

// The nearest expressions below `tree`.
void expressions_below(const Tree& tree, const Visit& visit) {
  for (const Tree& kid : tree.kids)
    if (kid.kind == Tree::Kind::expr)
      visit(kid);
    else
      expressions_below(kid, visit);
}

// Calls found(size of what disappears, replacement of `tree`) for every step inside `tree`; the caller wraps it into the rest.
using Found = std::function<void(std::size_t, Tree)>;
void steps(const Tree& tree, const Found& found) {
  const std::size_t whole = size(tree);
  if (tree.kind == Tree::Kind::list) {
    for (std::size_t length = tree.kids.size(); length >= 1; length /= 2)
      for (std::size_t first = 0; first + length <= tree.kids.size(); first += length) {
        Tree less = tree;
        less.kids.erase(less.kids.begin() + static_cast<std::ptrdiff_t>(first),
                        less.kids.begin() + static_cast<std::ptrdiff_t>(first + length));
        const std::size_t left = size(less);
        found(whole - left, std::move(less));
      }
  }
  if (tree.kind == Tree::Kind::expr && !tree.kids.empty()) {
    for (const char* literal : {"0", "1", "true"}) found(whole - 1, Tree::expr(literal));
    expressions_below(tree, [&](const Tree& part) { found(whole - size(part), part); });
  }
  for (std::size_t i = 0; i < tree.kids.size(); ++i)
    steps(tree.kids[i], [&](std::size_t gone, Tree part) {
      Tree less = tree;
      less.kids[i] = std::move(part);
      found(gone, std::move(less));
    });
  if (tree.kind == Tree::Kind::expr && tree.kids.empty() && tree.text.size() > 1)
    for (const char* literal : {"0", "1"}) found(0, Tree::expr(literal));
}

}  // namespace

std::string print(const Tree& tree) {
  std::string out;
  if (tree.kind == Tree::Kind::list) {
    for (std::size_t i = 0; i < tree.kids.size(); ++i) out += (i ? tree.text : "") + print(tree.kids[i]);
    return out;
  }
  std::size_t next = 0;
  for (char c : tree.text)
    if (c == '$')
      out += print(tree.kids.at(next++));
    else
      out += c;
  return out;
}

std::size_t size(const Tree& tree) {
  std::size_t n = 1;
  for (const Tree& kid : tree.kids) n += size(kid);
  return n;
}

std::vector<Tree> smaller(const Tree& tree) {
  std::vector<std::pair<std::size_t, Tree>> found;
  steps(tree, [&](std::size_t gone, Tree less) { found.emplace_back(gone, std::move(less)); });
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<Tree> trees;
  for (auto& [gone, less] : found) trees.push_back(std::move(less));
  return trees;
}

}  // namespace cosmati::fuzz
