// Runs a program: axes that bound a range point by point, the others in blocks small enough to stay in the caches, and in each
// block the streams that store, then the stores. A probe is one more store.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "oracle/contracts.h"
#include "oracle/interpreter.h"
#include "oracle/oracle.h"
#include "support/check.h"
#include "support/deep_stack.h"
#include "support/memory.h"

namespace cosmati::oracle {

namespace {

constexpr std::int64_t block_elements = std::int64_t{1} << 14;        // of one array
constexpr std::int64_t block_total_elements = std::int64_t{1} << 22;  // of all arrays of a block

// Where a store or the probe writes: index values per dimension and factor.
struct Target {
  std::string name;
  Array* array;
  DType from, to;
  Where where;
  struct Factor {
    Ref index;
    std::int64_t origin, extent;
  };
  std::vector<std::vector<Factor>> index;
};

void write(bool wide, const Target& target, const Ref& value) {
  Array& array = *target.array;
  std::vector<std::pair<Target::Factor, std::int64_t>> factors;  // with strides
  Dims dims = value->dims;
  std::int64_t stride = 1;
  for (std::size_t d = target.index.size(); d-- > 0;)
    for (std::size_t k = target.index[d].size(); k-- > 0;) {
      const auto& f = target.index[d][k];
      factors.emplace_back(f, stride);
      stride *= f.extent;
      dims = join(dims, f.index->dims);
    }
  Nest nest(dims);
  nest.operand(value->dims);
  for (const auto& f : factors) nest.operand(f.first.index->dims);
  nest.collapse();
  nest.runs([&](const std::int64_t* at, std::int64_t run) {
    for (std::int64_t k = 0; k < run; ++k) {
      std::int64_t offset = 0;
      bool inside = true, uncertain = false;
      for (std::size_t j = 0; j < factors.size(); ++j) {
        const auto& [f, step] = factors[j];
        const std::int64_t position = at[j + 1] + k * nest.stride(j + 1), i = f.index->i[position] - f.origin;
        inside = inside && i >= 0 && i < f.extent;
        uncertain = uncertain || (f.index->uncertain() && f.index->err[position] > 0);
        if (inside) offset += i * step;
      }
      if (!inside) {
        std::vector<std::int64_t> where;
        for (std::size_t j = factors.size(); j-- > 0;)
          where.push_back(factors[j].first.index->i[at[j + 1] + k * nest.stride(j + 1)]);
        throw Error(
            ErrorCode::out_of_bounds, target.where,
            fmt::format("the store to {} leaves its extents ({})", element_text(target.name, where), shape_text(array.shape)));
      }
      Num v = value->at(at[0] + k * nest.stride(0));
      if (is_float(target.to)) {
        if (wide)
          v.err += narrowing(target.from, target.to, v.f, v.err);
        else
          v.f = ops::round_to(target.to, v.f);
      } else if (!is_bool(target.to)) {
        v.i = ops::wrap_to(target.to, v.i);
      }
      if (wide && uncertain) v.err = is_float(target.to) ? infinity : 1;
      array.values[offset] = {v.f, v.i};
      array.error[offset] = wide ? v.err : 0;
      array.stored[offset] = 1;
    }
  });
}

class Runner {
 public:
  Runner(const ir::Program& program, const Inputs& inputs, const Options& options)
      : program_(program), inputs_(inputs), options_(options), interpreter_(program, inputs, options) {}

  Result operator()() {
    check_contracts(interpreter_, inputs_);
    for (const ir::AxisId a : program_.program_axes)
      (interpreter_.facts().bounds_a_range[a.index] ? stepped_ : blocked_).push_back(a.index);
    for (std::size_t t = 0; t < program_.tensors.size(); ++t) prepare_output(t);
    if (options_.probe) prepare_probe();
    interpreter_.effects = [this](std::optional<ir::StreamId> in) { effects(in); };
    count_shapes();
    steps(stepped_, 0, [&] { blocks(); });
    if (!any_instance_) finish_without_instances();
    interpreter_.progress().go_on();
    return std::move(result_);
  }

 private:
  static Array array_of(std::vector<std::int64_t> shape) {
    Array a;
    std::int64_t n = 1;
    for (const std::int64_t s : shape)
      if (__builtin_mul_overflow(n, s, &n)) n = std::numeric_limits<std::int64_t>::max();
    constexpr std::int64_t bytes = sizeof(a.values[0]) + sizeof(a.error[0]) + 1;
    if (n > support::machine_memory() / bytes)
      throw Error(ErrorCode::not_supported, {}, fmt::format("the oracle would need {} elements for one result", n),
                  "use smaller extents");
    a.shape = std::move(shape);
    a.values.resize(n);
    a.error.resize(n);
    a.stored.resize(n);
    return a;
  }

  void prepare_output(std::size_t t) {
    const ir::Tensor& tensor = program_.tensors[t];
    if (tensor.access == ir::Access::in) {
      output_of_.push_back(0);
      return;
    }
    output_of_.push_back(result_.outputs.size());
    std::vector<std::int64_t> shape;
    for (const ir::Dim& dim : tensor.dims) {
      std::int64_t n = 1;
      for (const ir::Factor& f : dim) n *= std::max<std::int64_t>(0, (f.axis ? inputs_.extents.at(f.axis.index) : 0) + f.offset);
      shape.push_back(n);
    }
    Array a = array_of(shape);
    if (tensor.access == ir::Access::inout) {
      const TensorView& view = inputs_.tensors.at(t);
      std::vector<std::int64_t> at(shape.size(), 0), strides = view.strides;
      if (strides.empty()) {
        strides.assign(shape.size(), 1);
        for (std::size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
      }
      for (auto& element : a.values) {
        std::int64_t offset = 0;
        for (std::size_t d = 0; d < at.size(); ++d) offset += at[d] * strides[d];
        element = ops::load(view.dtype, static_cast<const char*>(view.data) + offset * byte_size(view.dtype));
        for (std::size_t d = at.size(); d > 0 && ++at[d - 1] == shape[d - 1]; --d) at[d - 1] = 0;
      }
    }
    result_.outputs.push_back(std::move(a));
  }

  // The probe's array spans every coordinate that any instance has.
  void prepare_probe() {
    const ir::Value& value = program_[*options_.probe];
    COSMATI_CHECK(std::visit([](const auto& n) { return !std::is_same_v<std::decay_t<decltype(n)>, ir::Arg>; }, value.node),
                  "a lambda's argument has no value to probe");
    ir::AxisSet axes;
    for (const ir::AxisId a : program_.program_axes)
      if (ir::contains(value.axes, a)) axes.push_back(a);
    for (const ir::AxisId a : value.axes)
      if (!program_[a].program) axes.push_back(a);
    std::vector<std::pair<std::int64_t, std::int64_t>> ranges(axes.size(), {0, 0});
    std::vector<char> known(axes.size(), false);
    steps(stepped_, 0, [&] {
      for (std::size_t k = 0; k < axes.size(); ++k) {
        const auto& piece = program_[axes[k]].piece;
        const BindingRef b = interpreter_.canonical(piece ? program_[*piece].axis.index : axes[k].index);
        if (b->lo >= b->hi) continue;
        ranges[k] =
            known[k] ? std::pair(std::min(ranges[k].first, b->lo), std::max(ranges[k].second, b->hi)) : std::pair(b->lo, b->hi);
        known[k] = true;
      }
    });
    std::vector<std::int64_t> shape;
    for (const auto& [lo, hi] : ranges) shape.push_back(hi - lo);
    result_.probe = array_of(shape);
    probe_axes_ = axes;
    probe_ranges_ = ranges;
    for (const std::uint32_t s : interpreter_.facts().value[options_.probe->index])
      if (s >= interpreter_.facts().axis_count)
        inner_of(ir::StreamId{s - interpreter_.facts().axis_count});
      else if (program_.axes[s].piece)
        inner_of(*program_.axes[s].piece);
  }

  void inner_of(ir::StreamId s) {
    const auto level = [&](std::optional<ir::StreamId> in) {
      int n = 0;
      for (; in; in = program_[*in].parent) ++n;
      return n;
    };
    if (level(s) > level(probe_stream_)) probe_stream_ = s;
  }

  bool has_effects(std::size_t s) const {
    if (interpreter_.facts().stores[s]) return true;
    for (auto in = probe_stream_; in; in = program_[*in].parent)
      if (in->index == s) return true;
    return false;
  }

  void effects(std::optional<ir::StreamId> in) {
    any_instance_ = true;
    for (std::size_t s = 0; s < program_.streams.size(); ++s)
      if (program_.streams[s].parent == in && has_effects(s))
        interpreter_.run_stream(ir::StreamId{static_cast<std::uint32_t>(s)});
    for (std::size_t s = 0; s < program_.stores.size(); ++s)
      if (program_.stores[s].stream == in && !stored_before(s)) execute(program_.stores[s]);
    if (options_.probe && probe_stream_ == in) execute_probe();
  }

  // What is reduced over all instances is the same in each of them: it is stored once for what tells it apart.
  bool stored_before(std::size_t s) {
    const ir::Store& store = program_.stores[s];
    const ir::AxisSet& done = program_[store.value].done;
    if (store.stream || done.empty()) return false;
    std::vector<std::int64_t> where = {static_cast<std::int64_t>(s)};
    for (const auto* axes : {&stepped_, &blocked_})
      for (const std::uint32_t a : *axes)
        if (!ir::contains(done, ir::AxisId{a})) where.push_back(interpreter_.binding(a)->lo);
    return !stored_.insert(std::move(where)).second;
  }

  void execute(const ir::Store& store) {
    const ir::Tensor& tensor = program_[store.tensor];
    Array& array = result_.outputs.at(output_of_.at(store.tensor.index));
    Target target{tensor.name, &array, program_[store.value].dtype, tensor.dtype, store.where, {}};
    for (std::size_t d = 0; d < store.index.size(); ++d) {
      const auto extents = factor_extents(program_, inputs_, tensor, d, store.index[d].size(), array.shape.at(d));
      std::vector<Target::Factor> factors;
      for (std::size_t k = 0; k < extents.size(); ++k) factors.push_back({interpreter_.eval(store.index[d][k]), 0, extents[k]});
      target.index.push_back(std::move(factors));
    }
    write(interpreter_.wide(), target, interpreter_.eval(store.value));
  }

  void execute_probe() {
    const ir::Value& value = program_[*options_.probe];
    Target target{"the probe", &*result_.probe, value.dtype, value.dtype, value.where, {}};
    for (std::size_t k = 0; k < probe_axes_.size(); ++k)
      target.index.push_back(
          {{interpreter_.binding(probe_axes_[k].index)->coords, probe_ranges_[k].first, result_.probe->shape[k]}});
    write(interpreter_.wide(), target, interpreter_.eval(*options_.probe));
  }

  void steps(const std::vector<std::uint32_t>& axes, std::size_t k, const std::function<void()>& inside) {
    if (k == axes.size()) return inside();
    const BindingRef range = interpreter_.canonical(axes[k]);
    for (std::int64_t c = range->lo; c < range->hi; ++c) {
      const Progress::Turn turn(interpreter_.progress(), static_cast<double>(c - range->lo),
                                static_cast<double>(range->hi - range->lo));
      Interpreter::Scope point(interpreter_, true);
      point.fixed(axes[k], c);
      steps(axes, k + 1, inside);
    }
  }

  // Where a program axis is empty no instance runs, but what is reduced over it has its value of nothing.
  void finish_without_instances() {
    for (const ir::Store& store : program_.stores) {
      const ir::AxisSet& done = program_[store.value].done;
      if (store.stream || done.empty()) continue;
      std::vector<std::uint32_t> left;
      for (const std::uint32_t a : stepped_)
        if (!ir::contains(done, ir::AxisId{a})) left.push_back(a);
      steps(left, 0, [&] {
        const bool none = std::any_of(blocked_.begin(), blocked_.end(), [&](std::uint32_t a) {
          const BindingRef range = interpreter_.canonical(a);
          return !ir::contains(done, ir::AxisId{a}) && range->lo >= range->hi;
        });
        if (!none) execute(store);
      });
    }
  }

  // How many arrays of each set of axes a block holds.
  void count_shapes() {
    const Facts& facts = interpreter_.facts();
    std::map<ir::AxisSet, std::int64_t> counts;
    for (std::size_t v = 0; v < program_.values.size(); ++v)
      if (facts.ambient[v] && !facts.only_summed[v] && !program_.values[v].axes.empty()) ++counts[program_.values[v].axes];
    shapes_.assign(counts.begin(), counts.end());
  }

  void blocks() {
    std::vector<BindingRef> ranges;
    std::vector<std::int64_t> sizes;
    for (const std::uint32_t a : blocked_) {
      ranges.push_back(interpreter_.canonical(a));
      if (ranges.back()->lo >= ranges.back()->hi) return;
      sizes.push_back(1);
    }
    struct Shape {
      std::int64_t each, count;
      std::vector<char> over;  // per blocked axis
    };
    std::vector<Shape> shapes;
    for (const auto& [axes, count] : blocked_.empty() ? decltype(shapes_){} : shapes_) {
      Shape s{1, count, std::vector<char>(blocked_.size(), false)};
      for (const ir::AxisId a : axes) {
        const auto found = std::find(blocked_.begin(), blocked_.end(), a.index);
        const auto& piece = program_[a].piece;
        if (found != blocked_.end())
          s.over[found - blocked_.begin()] = true;
        else if (piece && !program_[*piece].tile)
          continue;
        else if (!program_[a].program) {
          const BindingRef b = interpreter_.canonical(piece ? program_[*piece].axis.index : a.index);
          s.each *= std::max<std::int64_t>(1, std::min(b->hi - b->lo, block_elements));
          s.each = std::min(s.each, block_elements);
        }
      }
      shapes.push_back(std::move(s));
    }
    const auto fits = [&] {
      double total = 0;
      for (const Shape& s : shapes) {
        double n = static_cast<double>(s.each);
        for (std::size_t k = 0; k < sizes.size(); ++k)
          if (s.over[k]) n *= static_cast<double>(sizes[k]);
        if (n > static_cast<double>(block_elements) && n > static_cast<double>(s.each)) return false;
        total += n * static_cast<double>(s.count);
      }
      return total <= static_cast<double>(block_total_elements);
    };
    for (std::size_t k = sizes.size(); k-- > 0;) {
      const std::int64_t length = ranges[k]->hi - ranges[k]->lo;
      while (sizes[k] < length) {
        const std::int64_t before = sizes[k];
        sizes[k] = std::min(length, 2 * before);
        if (fits()) continue;
        sizes[k] = before;
        break;
      }
    }
    const std::function<void(std::size_t)> walk = [&](std::size_t k) {
      if (k == sizes.size()) {
        interpreter_.start_block();
        return effects(std::nullopt);
      }
      const std::int64_t length = ranges[k]->hi - ranges[k]->lo;
      for (std::int64_t lo = ranges[k]->lo; lo < ranges[k]->hi; lo += sizes[k]) {
        const std::int64_t done = (lo - ranges[k]->lo) / sizes[k], blocks = (length - 1) / sizes[k] + 1;
        const Progress::Turn turn(interpreter_.progress(), static_cast<double>(done), static_cast<double>(blocks));
        Interpreter::Scope block(interpreter_, true);
        block.span(blocked_[k], ranges[k]->dim, lo, std::min(lo + sizes[k], ranges[k]->hi));
        walk(k + 1);
      }
    };
    walk(0);
  }

  const ir::Program& program_;
  const Inputs& inputs_;
  const Options& options_;
  Interpreter interpreter_;
  Result result_;
  std::vector<std::size_t> output_of_;            // per tensor
  std::vector<std::uint32_t> stepped_, blocked_;  // program axes
  std::set<std::vector<std::int64_t>> stored_;    // stores of what is reduced over instances, with the others' coordinates
  std::vector<std::pair<ir::AxisSet, std::int64_t>> shapes_;
  ir::AxisSet probe_axes_;
  std::vector<std::pair<std::int64_t, std::int64_t>> probe_ranges_;
  std::optional<ir::StreamId> probe_stream_;
  bool any_instance_ = false;
};

}  // namespace

Result run(const ir::Program& program, const Inputs& inputs, const Options& options) {
  return support::on_deep_stack([&] { return Runner(program, inputs, options)(); });
}

}  // namespace cosmati::oracle
