// The lists of layouts.txt, read.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "place/layout.h"

namespace cosmati::place::test {

struct Layout {
  std::vector<std::string> axes;  // AxisId k is the k-th
  Extents extents;
  Placement placement;  // as written: nothing is listed of what no axis uses
  ir::AxisId axis(const std::string& name) const {
    const auto at = std::find(axes.begin(), axes.end(), name);
    if (at == axes.end()) throw std::runtime_error("no axis " + name);
    return ir::AxisId{static_cast<std::uint32_t>(at - axes.begin())};
  }
};

inline std::vector<Digit> read_digits(const std::string& text) {
  const std::map<char, Res> resources{{'G', Res::grid}, {'C', Res::cluster}, {'S', Res::subgroup}, {'L', Res::lane},
                                      {'R', Res::reg},  {'T', Res::step},    {'@', Res::addr}};
  std::vector<Digit> digits;
  std::istringstream in(text);
  char open = 0, res = 0, comma = 0, close = 0;
  std::int64_t pos = 0, size = 0;
  while (in >> open >> res >> comma >> pos >> comma >> size >> close) digits.push_back(digit(resources.at(res), pos, size));
  return digits;
}

// "m = (L,4,8)(R,2,2); k = ..."
inline Layout read_layout(const std::string& extents, const std::string& lists) {
  Layout layout;
  std::istringstream sizes(extents);
  for (std::string one; sizes >> one;) {
    const std::size_t equal = one.find('=');
    layout.axes.push_back(one.substr(0, equal));
    layout.extents.push_back(std::stoll(one.substr(equal + 1)));
  }
  std::istringstream parts(lists);
  for (std::string one; std::getline(parts, one, ';');) {
    std::string name;
    std::istringstream(one.substr(0, one.find('='))) >> name;
    layout.placement.axes.push_back({layout.axis(name), read_digits(one.substr(one.find('=') + 1))});
  }
  return layout;
}

inline std::map<std::string, Layout> layouts() {
  std::ifstream file("tests/place/layouts.txt");
  if (!file) throw std::runtime_error("layouts.txt is not there");
  std::map<std::string, Layout> all;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream parts(line);
    std::string name, extents, lists;
    std::getline(parts, name, '|');
    std::getline(parts, extents, '|');
    std::getline(parts, lists);
    name.erase(name.find_last_not_of(' ') + 1);
    if (!all.emplace(name, read_layout(extents, lists)).second) throw std::runtime_error("twice: " + name);
  }
  return all;
}

}  // namespace cosmati::place::test
