// Prepared launches: run, rebind, scratch, streams.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstring>

#include "runtime/fixture.h"

namespace cosmati::test {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(launch, runs_as_often_as_wanted_on_changing_data) {
  for (const Device& device : all_devices()) {
    std::vector<float> x = counted(6), y(6);
    const Function f(doubled(), device, uncached());
    const Launch l = f.prepare({{"x", view(x, {2, 3})}, {"y", view(y, {2, 3})}});
    EXPECT_EQ(y[5], 0) << "preparing writes nothing";
    l();
    EXPECT_THAT(y, ElementsAre(0, 2, 4, 6, 8, 10)) << device.name();
    x[5] = 50;
    l();
    EXPECT_EQ(y[5], 100) << device.name();
    EXPECT_EQ(f.compiles(), device.name() == "oracle" ? 0u : 1u);
  }
}

TEST(launch, arguments_in_declared_order_are_the_same_call) {
  const Program p = program(
      "program f(in x: f32[i], out y: f32[i], k: f32 = 3, b: bool = true) {\n"
      " parallel i { y[i] = where(b, x * k, 0) }\n}");
  for (const Device& device : all_devices()) {
    std::vector<float> x = counted(4), y(4);
    const Function f(p, device, uncached());
    f(view(x, {4}), view(y, {4}));
    EXPECT_EQ(y[3], 9) << device.name();
    f(view(x, {4}), view(y, {4}), 2);
    EXPECT_EQ(y[3], 6) << device.name();
    f(view(x, {4}), view(y, {4}), 0.5f, false);
    EXPECT_EQ(y[3], 0) << device.name();
    EXPECT_THAT(refusal(ErrorCode::bad_argument, [&] { f(view(x, {4})); }), HasSubstr("needs an argument `y`"));
    EXPECT_THAT(refusal(ErrorCode::bad_argument, [&] { f(view(x, {4}), view(y, {4}), 1, true, 1); }),
                HasSubstr("has 4 parameters"));
    EXPECT_THAT(refusal(ErrorCode::bad_argument, [&] { f(view(x, {4}), 1, 1); }), HasSubstr("y is a tensor parameter"));
  }
}

TEST(launch, rebinding_exchanges_arrays_and_scalars) {
  const Program p = program("program f(in x: f32[i], out y: f32[i], k: f32) {\n parallel i { y[i] = x * k }\n}");
  for (const Device& device : all_devices()) {
    std::vector<float> x = counted(4), other = counted(4, 10), y(4), z(4);
    const Function f(p, device, uncached());
    Launch l = f.prepare({{"x", view(x, {4})}, {"y", view(y, {4})}, {"k", 2.0}});
    l();
    l.rebind("x", view(other, {4}));
    l.rebind("y", view(z, {4}));
    l.rebind("k", 3);
    l();
    EXPECT_THAT(y, ElementsAre(0, 2, 4, 6)) << device.name();
    EXPECT_THAT(z, ElementsAre(30, 33, 36, 39)) << device.name();
    EXPECT_LE(f.compiles(), 1u);
  }
}

TEST(launch, rebinding_takes_new_extents_when_all_arguments_agree) {
  for (const Device& device : all_devices()) {
    std::vector<float> x = counted(12), y(12);
    const Function f(doubled(), device, uncached());
    Launch l = f.prepare({{"x", view(x, {2, 3})}, {"y", view(y, {2, 3})}});
    EXPECT_THAT(refusal(ErrorCode::extent_mismatch, [&] { l.rebind("x", view(x, {3, 3})); }), HasSubstr("axis i"));
    l();
    EXPECT_EQ(y[5], 10);
    l.rebind({{"x", view(x, {3, 4})}, {"y", view(y, {3, 4})}});
    l();
    EXPECT_EQ(y[11], 22) << device.name();
    EXPECT_LE(f.compiles(), 1u);
  }
}

TEST(launch, a_refused_rebinding_changes_nothing) {
  for (const Device& device : compiling_devices()) {
    std::vector<float> x = counted(6), y(12, -1);
    const Function f(doubled(), device, uncached());
    Launch l = f.prepare({{"x", view(x, {2, 3})}, {"y", view(y, {2, 3})}});
    const auto refused = [&](ErrorCode code, const std::string& name, const Argument& a) {
      return refusal(code, [&] { l.rebind(name, a); });
    };
    EXPECT_THAT(refused(ErrorCode::bad_argument, "z", view(x, {2, 3})), HasSubstr("no parameter `z`"));
    EXPECT_THAT(refused(ErrorCode::bad_argument, "x", 1.0), HasSubstr("tensor parameter"));
    EXPECT_THAT(refused(ErrorCode::bad_argument, "x", TensorView(nullptr, f32, {2, 3})), HasSubstr("no memory"));
    EXPECT_THAT(refused(ErrorCode::bad_argument, "x", TensorView(x.data(), i32, {2, 3})), HasSubstr("x is i32"));
    EXPECT_THAT(refused(ErrorCode::overlap, "x", TensorView(y.data() + 1, f32, {2, 3})), HasSubstr("not exactly the same view"));
    EXPECT_THAT(refused(ErrorCode::overlap, "y", TensorView(y.data(), f32, {2, 3}, {1, 1})), HasSubstr("share memory"));
    EXPECT_THAT(refused(ErrorCode::bad_argument, "y", view(std::as_const(y), {2, 3})), HasSubstr("read-only"));
    EXPECT_THAT(refused(ErrorCode::bad_argument, "x", TensorView(y.data(), f32, {2, 3})),
                HasSubstr("y does not share memory with x"));
    EXPECT_THAT(refused(ErrorCode::bad_argument, "x", TensorView(x.data(), f32, {2, 3}, {1, 2})), HasSubstr("stride(x, 1) == 1"));
    EXPECT_THAT(y, Each(-1));
    l();
    EXPECT_EQ(y[5], 10) << device.name();
    EXPECT_EQ(f.compiles(), 1u);
  }
}

TEST(launch, a_kernel_for_any_stride_takes_a_stride_of_one) {
  for (const Device& device : compiling_devices()) {
    std::vector<float> x = counted(12), y(6);
    const Function f(doubled(), device, uncached());
    Launch l = f.prepare({{"x", TensorView(x.data(), f32, {2, 3}, {6, 2})}, {"y", view(y, {2, 3})}});
    l.rebind("x", view(x, {2, 3}));
    l();
    EXPECT_THAT(y, ElementsAre(0, 2, 4, 6, 8, 10)) << device.name();
    EXPECT_EQ(f.compiles(), 1u);
  }
}

TEST(launch, another_dtype_is_another_kernel) {
  const Program p = program("program f<T: float>(in x: T[i], out y: T[i]) {\n parallel i { y[i] = x }\n}");
  std::vector<float> x(4), y(4);
  std::vector<double> wide(4);
  const Function f(p, Device::sim());
  Launch l = f.prepare({{"x", view(x, {4})}, {"y", view(y, {4})}});
  EXPECT_THAT(refusal(ErrorCode::bad_argument, [&] { l.rebind("x", view(wide, {4})); }), HasSubstr("both are T"));
  std::vector<double> out(4);
  EXPECT_THAT(refusal(ErrorCode::bad_argument, [&] { l.rebind({{"x", view(wide, {4})}, {"y", view(out, {4})}}); }),
              HasSubstr("x was f32 of 1 dimensions and is f64 of 1"));
}

TEST(launch, contracts_are_checked_when_prepared_and_when_their_argument_changes) {
  const Program p = program(
      "program pick(in table: f32[w], in id: i32[t] in 0 .. extent(w), out y: f32[t]) {\n"
      " parallel t { y[t] = table[id] }\n}");
  for (const Device& device : all_devices()) {
    std::vector<float> table = counted(5), y(3, -1);
    std::vector<std::int32_t> id = {4, 0, 5}, good = {4, 0, 2}, bad = {0, -1, 0};
    const Function f(p, device, uncached());
    const Arguments broken = {{"table", view(table, {5})}, {"id", view(id, {3})}, {"y", view(y, {3})}};
    EXPECT_THAT(refusal(ErrorCode::contract_broken, [&] { (void)f.prepare(broken); }), HasSubstr("id[2] = 5 is outside 0 .. 5"));
    id[2] = 1;
    Launch l = f.prepare(broken);
    l();
    EXPECT_THAT(y, ElementsAre(4, 0, 1));
    EXPECT_THAT(refusal(ErrorCode::contract_broken, [&] { l.rebind("id", view(bad, {3})); }), HasSubstr("id[1] = -1"));
    l.rebind("id", view(good, {3}));
    l();
    EXPECT_THAT(y, ElementsAre(4, 0, 2)) << device.name();
    // The same table with fewer words: what was in bounds is not.
    EXPECT_THAT(refusal(ErrorCode::contract_broken, [&] { l.rebind("table", view(table, {4})); }), HasSubstr("outside 0 .. 4"));
  }
}

TEST(launch, scalars_that_decide_about_extents_are_part_of_the_check) {
  const Program p =
      program("program ramp(n: i64, in x: f32[], out y: f32[i]) {\n axis i in 0 .. n\n parallel i { y[i] = x + f32(i) }\n}");
  for (const Device& device : all_devices()) {
    std::vector<float> x = {1}, y(5);
    const Function f(p, device, uncached());
    f(3, view(x, {}), view(y, {3}));
    f(4, view(x, {}), view(y, {4}));
    EXPECT_THAT(y, ElementsAre(1, 2, 3, 4, 0)) << device.name();
    EXPECT_THAT(refusal(ErrorCode::extent_mismatch, [&] { f(5, view(x, {}), view(y, {4})); }), HasSubstr("axis i is"));
    Launch l = f.prepare({{"n", 4}, {"x", view(x, {})}, {"y", view(y, {4})}});
    EXPECT_THAT(refusal(ErrorCode::extent_mismatch, [&] { l.rebind("n", 5); }), HasSubstr("axis i is"));
    EXPECT_LE(f.compiles(), 1u);
  }
}

// A stage between two phases needs memory of the launch; a value kept over an axis needs memory of the worker.
const Program& staged() {
  static const Program p = program(
      "program staged(in x: f32[i, j], out y: f32[i, j]) {\n parallel i {\n  m = exp(x - max(x, j))\n  y[i, j] = m / sum(m, j)\n "
      "}\n}");
  return p;
}

TEST(launch, lent_scratch_is_used_and_has_a_size) {
  for (const Device& device : compiling_devices()) {
    std::vector<float> x = counted(300), y(300), same(300);
    Options options = uncached();
    options.knobs["home.m"] = "worker";
    const Function f(staged(), device, options);
    f(view(x, {3, 100}), view(same, {3, 100}));
    Launch l = f.prepare({{"x", view(x, {3, 100})}, {"y", view(y, {3, 100})}});
    ASSERT_GE(l.scratch_bytes(), 100 * sizeof(float));
    std::vector<char> mine(l.scratch_bytes() + 3, 7);
    EXPECT_THAT(refusal(ErrorCode::bad_argument, [&] { l.scratch(mine.data(), l.scratch_bytes() - 1); }),
                HasSubstr("bytes of scratch"));
    l.scratch(mine.data() + 3, l.scratch_bytes());
    l();
    EXPECT_EQ(y, same) << device.name();
    EXPECT_THAT(mine, testing::Contains(testing::Ne(7))) << "the launch works in it";
    EXPECT_THAT(std::vector<char>(mine.begin(), mine.begin() + 3), Each(7));
    std::vector<float> wide(600), out(600);
    EXPECT_THAT(refusal(ErrorCode::bad_argument, [&] { l.rebind({{"x", view(wide, {3, 200})}, {"y", view(out, {3, 200})}}); }),
                HasSubstr("are lent"));
    l.scratch(nullptr, 0);
    l.rebind({{"x", view(wide, {3, 200})}, {"y", view(out, {3, 200})}});
    l();
    EXPECT_FLOAT_EQ(out[599], 1 / 200.0f) << device.name();
  }
}

TEST(launch, streams_are_of_the_same_device) {
  std::vector<float> x = counted(6), y(6);
  const Function f(doubled(), Device::sim());
  const Launch l = f.prepare({{"x", view(x, {2, 3})}, {"y", view(y, {2, 3})}});
  EXPECT_THAT(refusal(ErrorCode::bad_argument, [&] { l(Device::oracle().stream()); }), HasSubstr("stream of oracle"));
  EXPECT_THAT(y, Each(0));
  const Stream s = Device::sim().stream();
  l(s);
  s.wait();
  EXPECT_EQ(y[5], 10);
}

TEST(launch, a_kernel_says_what_it_is_and_for_which_arguments) {
  for (const Device& device : compiling_devices()) {
    std::vector<float> x(6), y(6);
    const Function f(doubled(), device, uncached());
    const Arguments arguments = {{"x", view(x, {2, 3})}, {"y", view(y, {2, 3})}};
    const Kernel k = f.prepare(arguments).kernel();
    EXPECT_EQ(k.name(), "doubled");
    EXPECT_EQ(k.plan(), f.plan(arguments));
    EXPECT_EQ(k.explain(), f.explain(arguments));
    EXPECT_EQ(k.domain(), f.facts(arguments));
    EXPECT_THAT(k.domain(), testing::Contains("stride(x, 1) == 1 or extent <= 1"));
    EXPECT_EQ(f.kernel({{"x", TensorView(nullptr, f32, {2, 3})}}).impl(), k.impl())
        << "shapes are enough, outputs may be missing";
  }
}

}  // namespace
}  // namespace cosmati::test
