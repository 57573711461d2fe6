// Normal form and well-formedness of placements: integer arithmetic on digits.
// SPDX-License-Identifier: Apache-2.0
#include "place/placement.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>

#include "support/check.h"

namespace cosmati::place {
namespace {

std::int64_t value(const Size& size, const std::vector<std::int64_t>& extent_of_axis) {
  std::int64_t product = size.factor;
  for (const Part& part : size.parts) product *= (extent_of_axis[part.axis.index] + part.over - 1) / part.over;
  return product;
}

std::string print(const Size& size, const ir::Program& names) {
  std::string text;
  if (size.factor != 1 || size.parts.empty()) text = std::to_string(size.factor);
  for (const Part& part : size.parts) {
    text += (text.empty() ? "" : "*") + names[part.axis].name;
    if (part.over != 1) text += "/" + std::to_string(part.over);
  }
  return text;
}

constexpr const char* resource_names[] = {"grid", "cluster", "subgroup", "lane", "reg", "step", "addr"};
static_assert(std::size(resource_names) == resource_count);

}  // namespace

std::string_view name(Res res) { return resource_names[static_cast<int>(res)]; }

std::int64_t number(const Size& size) {
  COSMATI_CHECK(size.is_constant(), "a size that depends on run-time extents was not counted");
  return size.factor;
}

Size operator*(const Size& a, const Size& b) {
  Size product{a.factor * b.factor, a.parts};
  product.parts.insert(product.parts.end(), b.parts.begin(), b.parts.end());
  std::sort(product.parts.begin(), product.parts.end());
  return product;
}

const AxisMap* Placement::find(ir::AxisId axis) const {
  for (const AxisMap& map : axes)
    if (map.axis == axis) return &map;
  return nullptr;
}

std::int64_t constant_size(const AxisMap& map, Res res) {
  std::int64_t product = 1;
  for (const Digit& digit : map.digits)
    if (digit.res == res) product *= digit.size.factor;
  return product;
}

std::int64_t group_lanes(const AxisMap& map) { return constant_size(map, Res::lane) * constant_size(map, Res::subgroup); }

std::int64_t side_by_side(const AxisMap& map) {
  const bool before = map.digits.size() > 1 && map.digits[0].res == Res::reg && map.digits[1].res == Res::lane;
  return before ? map.digits[0].size.factor : 1;
}

Placement normal_form(Placement p) {
  for (AxisMap& map : p.axes) {
    std::vector<Digit> merged;
    for (const Digit& digit : map.digits) {
      if (digit.size == Size{}) continue;
      if (!merged.empty() && merged.back().res == digit.res && merged.back().pos * merged.back().size == digit.pos)
        merged.back().size = merged.back().size * digit.size;
      else
        merged.push_back(digit);
    }
    map.digits = std::move(merged);
  }
  std::sort(p.axes.begin(), p.axes.end(), [](const AxisMap& a, const AxisMap& b) { return a.axis < b.axis; });
  std::stable_sort(p.rest.begin(), p.rest.end(), [](const Partial& a, const Partial& b) {
    return std::tuple(a.res, a.pos.parts.size(), a.pos.factor) < std::tuple(b.res, b.pos.parts.size(), b.pos.factor);
  });
  std::vector<Partial> merged;
  for (const Partial& free : p.rest) {
    if (free.size == Size{}) continue;
    Partial* last = merged.empty() ? nullptr : &merged.back();
    if (last && last->res == free.res && last->held == free.held && last->reducer == free.reducer &&
        last->pos * last->size == free.pos)
      last->size = last->size * free.size;
    else
      merged.push_back(free);
  }
  p.rest = std::move(merged);
  return p;
}

Placement at(Placement p, const std::vector<std::int64_t>& extent_of_axis) {
  const auto count = [&](Size& size) { size = {value(size, extent_of_axis), {}}; };
  for (AxisMap& map : p.axes)
    for (Digit& digit : map.digits) {
      count(digit.pos);
      count(digit.size);
    }
  for (Partial& free : p.rest) {
    count(free.pos);
    count(free.size);
  }
  return p;
}

std::string ill_formed(const Placement& p, const std::vector<std::int64_t>& extent_of_axis) {
  struct Segment {
    std::int64_t pos, size;
  };
  std::map<Res, std::vector<Segment>> segments;
  for (const AxisMap& map : p.axes) {
    std::int64_t covered = 1;
    for (const Digit& digit : map.digits) {
      std::int64_t pos = value(digit.pos, extent_of_axis), size = value(digit.size, extent_of_axis);
      if (pos < 1 || size < 1) return "";  // an empty axis: nothing is placed
      covered *= size;
      // Every loop, and every set of registers, is its own: these digits do not share one counter.
      if (digit.res != Res::step && digit.res != Res::reg && size > 1) segments[digit.res].push_back({pos, size});
    }
    if (covered < extent_of_axis[map.axis.index])
      return "the digits of axis " + std::to_string(map.axis.index) + " cover " + std::to_string(covered) + " of " +
             std::to_string(extent_of_axis[map.axis.index]) + " coordinates";
  }
  for (auto& [res, list] : segments) {
    std::sort(list.begin(), list.end(), [](const Segment& a, const Segment& b) { return a.pos < b.pos; });
    for (std::size_t i = 0; i + 1 < list.size(); ++i)
      if (list[i + 1].pos % (list[i].pos * list[i].size) != 0) return "two digits overlap on " + std::string(name(res));
  }
  return "";
}

Size count(const Placement& p, Res res) {
  Size product;
  for (const AxisMap& map : p.axes)
    for (const Digit& digit : map.digits)
      if (digit.res == res) product = product * digit.size;
  return product;
}

std::string print(const Placement& p, const ir::Program& names) {
  std::string text;
  for (const AxisMap& map : p.axes) {
    text += (text.empty() ? "" : ", ") + names[map.axis].name + " = ";
    for (const Digit& digit : map.digits)
      text += "(" + std::string(name(digit.res)) + ", " + print(digit.pos, names) + ", " + print(digit.size, names) + ")";
    if (map.digits.empty()) text += "()";
  }
  constexpr const char* held_names[] = {"same", "part", "first"};
  for (const Partial& free : p.rest) {
    text += (text.empty() ? "" : ", ") + std::string(held_names[static_cast<int>(free.held)]);
    if (free.held == Held::part) text += "(" + names[free.reducer].name + ")";
    text += " = (" + std::string(name(free.res)) + ", " + print(free.pos, names) + ", " + print(free.size, names) + ")";
  }
  return text;
}

}  // namespace cosmati::place
