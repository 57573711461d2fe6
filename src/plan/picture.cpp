// A cell is an element. Its colour is the group, a shade of it the lane; its title, and attributes for programs, say the numbers.
// SPDX-License-Identifier: Apache-2.0
#include "plan/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ir/describe.h"
#include "plan/nest.h"
#include "support/overloaded.h"

namespace cosmati::plan {
namespace {

using ir::AxisId;
using place::Res;
using support::overloaded;

constexpr std::int64_t most_rows = 32, most_columns = 64;
constexpr int cell = 22, line = 18, margin = 12;

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '&')
      out += "&amp;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

// What a root has elements of: its caption, and its axes beside those of the instances.
struct Drawn {
  std::string caption;
  std::vector<AxisId> axes;
};

class Picture {
 public:
  Picture(const ir::Program& p, const Plan& plan, const kernel::Shape& shape) : p_(p), plan_(plan), extents_(shape.extents) {}

  std::string run() {
    text(fmt::format("plan of {} for {}", plan_.program, plan_.target));
    for (const Phase& phase : plan_.mapping.phases) {
      text(fmt::format("phase {}: {}", phase.name, place::print(phase.placement, p_)));
      for (const Root& root : phase.roots) draw(phase, drawn(root));
    }
    return fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
        "font-family=\"monospace\" font-size=\"9\">\n{2}</svg>\n",
        width_ + margin, y_ + margin, body_);
  }

 private:
  void text(const std::string& words) {
    y_ += line;
    body_ += fmt::format("<text x=\"{}\" y=\"{}\" font-size=\"12\">{}</text>\n", margin, y_, escaped(words));
    width_ = std::max(width_, margin + 8 * static_cast<int>(words.size()));
  }

  Drawn drawn(const Root& root) const {
    return std::visit(
        overloaded{[&](const StoreRoot& r) {
                     const ir::Store& store = p_.stores[r.store];
                     ir::AxisSet axes = p_[store.value].axes;
                     for (const ir::Index& index : store.index)
                       for (const ir::ValueId part : index) axes = ir::set_union(axes, p_[part].axes);
                     return Drawn{"store " + p_[store.tensor].name, {axes.begin(), axes.end()}};
                   },
                   [&](const KeepRoot& r) { return of("keep ", r.value, {}); },
                   [&](const FillRoot& r) { return of("complete ", r.value, {}); },
                   [&](const AccumulateRoot& r) { return of("parts of ", r.reduce, p_[r.reduce].axes); },
                   [&](const PartRoot& r) { return of("parts of ", r.reduce, std::get<ir::Reduce>(p_[r.reduce].node).axes); },
                   [&](const StreamRoot& r) { return Drawn{"stream " + p_[p_[r.stream].axis].name, {}}; }},
        root);
  }
  Drawn of(const char* verb, ir::ValueId value, const ir::AxisSet& more) const {
    const ir::AxisSet axes = ir::set_union(p_[value].axes, more);
    return {verb + ir::describe(p_, value), {axes.begin(), axes.end()}};
  }

  void draw(const Phase& phase, Drawn d) {
    std::erase_if(d.axes, [&](AxisId axis) { return p_[axis].piece.has_value(); });
    const place::Placement placement = nest(phase, d.axes, false, extents_);
    // The instances slow to fast, then the others by name: the last has the columns.
    std::stable_sort(d.axes.begin(), d.axes.end(), [&](AxisId a, AxisId b) { return p_[a].name < p_[b].name; });
    std::vector<AxisId> axes = phase.instance_axes;
    for (const AxisId axis : d.axes)
      if (std::find(axes.begin(), axes.end(), axis) == axes.end()) axes.push_back(axis);
    const std::int64_t columns = axes.empty() ? 1 : extents_[axes.back().index];
    double rows = 1;
    std::string names;
    for (const AxisId axis : axes)
      names += fmt::format("{}{} {}", names.empty() ? "" : ", ", p_[axis].name, extents_[axis.index]);
    for (std::size_t a = 0; a + 1 < axes.size(); ++a) rows *= static_cast<double>(extents_[axes[a].index]);
    const auto drawn_rows = static_cast<std::int64_t>(std::min<double>(rows, most_rows));
    const std::int64_t drawn_columns = std::min(columns, most_columns);
    const bool cut = drawn_rows < rows || drawn_columns < columns;
    text(fmt::format("{}: {}{}", d.caption, names.empty() ? "one element" : names,
                     cut ? fmt::format("; the first {} x {}", drawn_rows, drawn_columns) : ""));
    y_ += line / 2;
    for (std::int64_t r = 0; r < drawn_rows; ++r, y_ += cell)
      for (std::int64_t c = 0; c < drawn_columns; ++c) {
        std::vector<std::int64_t> at(axes.size(), c);
        std::int64_t rest = r;
        for (std::size_t a = axes.size() - std::min<std::size_t>(axes.size(), 1); a-- > 0; rest /= extents_[axes[a].index])
          at[a] = rest % extents_[axes[a].index];
        element(placement, axes, at, static_cast<int>(c));
      }
    width_ = std::max(width_, margin + cell * static_cast<int>(drawn_columns));
  }

  // The owner has index 0 wherever the element is held by several.
  void element(const place::Placement& placement, const std::vector<AxisId>& axes, const std::vector<std::int64_t>& at,
               int column) {
    place::Counts index;
    std::string where, numbers;
    for (std::size_t a = 0; a < axes.size(); ++a) {
      std::int64_t rest = at[a];
      for (const place::Digit& d : placement.find(axes[a])->digits) {
        index[d.res] += rest % place::number(d.size) * place::number(d.pos);
        rest /= place::number(d.size);
      }
      where += fmt::format("{}{} {}", where.empty() ? "" : ", ", p_[axes[a]].name, at[a]);
      numbers += fmt::format("{}{}", numbers.empty() ? "" : " ", at[a]);
    }
    const std::int64_t group = index[Res::grid], lane = index[Res::lane] + kernel::subgroup_lanes * index[Res::subgroup];
    const auto hue = static_cast<int>(std::fmod(static_cast<double>(group) * 137.5, 360));
    const int x = margin + cell * column;
    body_ += fmt::format(
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"hsl({},60%,{}%)\" data-element=\"{}\" data-group=\"{}\" "
        "data-lane=\"{}\" data-register=\"{}\" data-step=\"{}\"><title>{}: group {}, lane {}, register {}, step {}</title></rect>"
        "<text x=\"{}\" y=\"{}\">{}.{}</text>\n",
        x, y_, cell - 1, cell - 1, hue, 85 - lane % 32, numbers, group, lane, index[Res::reg], index[Res::step], where, group,
        lane, index[Res::reg], index[Res::step], x + 2, y_ + 14, group, lane);
  }

  const ir::Program& p_;
  const Plan& plan_;
  const place::Extents& extents_;
  std::string body_;
  int width_ = 0, y_ = 0;
};

}  // namespace

std::string to_svg(const ir::Program& program, const Plan& plan, const kernel::Shape& shape) {
  return Picture(program, plan, shape).run();
}

}  // namespace cosmati::plan
