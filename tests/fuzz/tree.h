// Program text as a tree that can be made smaller: what may be left out and what may be replaced is known, meaning is not. A
// smaller tree may be no legal program; whoever shrinks asks the compiler.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace cosmati::fuzz {

struct Tree {
  enum class Kind : unsigned char {
    form,  // `text` with each $ replaced by the next kid
    expr,  // the same, and an expression: it may be replaced by one of the expressions in it, or by a literal
    list,  // the kids with `text` between them; each of them may be left out
  };
  Kind kind = Kind::form;
  std::string text;
  std::vector<Tree> kids;

  static Tree form(std::string text, std::vector<Tree> kids = {}) { return {Kind::form, std::move(text), std::move(kids)}; }
  static Tree expr(std::string text, std::vector<Tree> kids = {}) { return {Kind::expr, std::move(text), std::move(kids)}; }
  static Tree list(std::string between, std::vector<Tree> kids = {}) { return {Kind::list, std::move(between), std::move(kids)}; }
};

std::string print(const Tree& tree);
std::size_t size(const Tree& tree);  // nodes

// Every tree that is one step smaller, the largest steps first.
std::vector<Tree> smaller(const Tree& tree);

}  // namespace cosmati::fuzz
