// The simulator: results are those of ops::reference, and every planted fault is reported with its names.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <bit>
#include <cfenv>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include <cosmati/error.h>
#include <fmt/format.h>

#include "kernel/launch.h"

namespace cosmati::kernel {
namespace {

using ops::Op;

template <class T>
Memory memory(std::vector<T>& v) {
  return {v.data(), 0, static_cast<std::int64_t>(v.size())};
}

void run(const std::string& text, std::vector<Memory> buffers, std::vector<std::int64_t> params = {}) {
  simulate(parse(text))->run({std::move(buffers), std::move(params)});
}

// Runs a phase body on x (f32, read_write, 8 elements), s (worker scratch, 4) and t (launch scratch, 4).
std::string fault(const std::string& phases) {
  std::vector<float> x(8, 1), s(8), t(4);
  try {
    run("kernel k\n  buffer x: f32 read_write = argument(0)\n  buffer s: f32 read_write = worker_scratch[4]\n"
        "  buffer t: f32 read_write = launch_scratch[4]\n" +
            phases,
        {memory(x), memory(s), memory(t)});
  } catch (const InternalError& e) {
    return e.what();
  }
  return "none";
}

void expect_fault(const std::string& phases, const std::string& where, const std::string& what) {
  const std::string message = fault(phases);
  EXPECT_NE(message.find("kernel k, " + where + ": "), std::string::npos) << message;
  EXPECT_NE(message.find(what), std::string::npos) << message;
}

TEST(Simulator, RunsLoopsBranchesAndPhases) {
  const std::string text = R"(kernel rows
  param rows: i64 = extent(0)
  param cols: i64 = extent(1)
  param scale: f32 = scalar(0)
  buffer x: f32 read = argument(0)
  buffer y: f32 write = argument(1)
  buffer part: f32 read_write = launch_scratch[rows]
  buffer row: f32 read_write = worker_scratch[cols]
  phase sums groups rows
    for c in 0 .. cols
      row[c] = x[group * cols + c] * scale
    for c2 in 0 .. cols carry a0 = 0f32, b0 = 1f32 gives a, b
      next b0, a0 + row[c2]
    if b > 0f32
      part[group] = b
    else
      part[group] = a
  phase last groups 1
    for r in 0 .. rows
      y[r] = part[r] + part[rows - 1]
)";
  std::vector<float> x = {1, 2, 3, -4, -5, -6}, y(2), part(2), row(6);
  run(text, {memory(x), memory(y), memory(part), memory(row)}, {2, 3, std::bit_cast<std::int32_t>(2.0f)});
  // (a, b) steps to (b, a + v): row 0 is (0,1) (1,2) (2,5) (5,8); row 1 is (0,1) (1,-8) (-8,-9) (-9,-20), so a is kept.
  EXPECT_EQ(y[0], 8.0f - 9.0f);
  EXPECT_EQ(y[1], -18.0f);
}

TEST(Simulator, EmptyLoopsAndPhasesDoNothing) {
  std::vector<float> x(8, 1);
  run("kernel k\n  param n: i64 = extent(0)\n  buffer x: f32 read_write = argument(0)\n  phase none groups n\n    x[99] = 1f32\n"
      "  phase main groups 1\n    for i in 5 .. 2 carry a = 3f32 gives b\n      x[99] = a\n      next x[99]\n    x[0] = b\n",
      {memory(x)}, {-4});
  EXPECT_EQ(x[0], 3);
}

TEST(Simulator, GuardsExcludeAccesses) {
  EXPECT_EQ(fault("  phase p groups 2\n    let g = group > 5\n    x[group] = (x[100] if g else 2f32)\n    x[-7] = 1f32 if g\n"),
            "none");
  EXPECT_EQ(fault("  phase p groups 1\n    x[0] = 1f32\n    x[0] = x[0] + 1f32\n"), "none") << "one group may store again";
  EXPECT_EQ(fault("  phase p groups 2\n    x[group] = 1f32\n  phase q groups 2\n    x[1 - group] = 1f32\n"), "none");
}

TEST(Simulator, NegativeOffsetsOfReversedViews) {
  std::vector<float> x = {1, 2, 3};
  run("kernel k\n  buffer x: f32 read_write = argument(0)\n  phase main groups 3\n    x[0 - group] = f32(group)\n",
      {{&x[2], -2, 1}});
  EXPECT_EQ(x, (std::vector<float>{2, 1, 0}));
}

TEST(Simulator, ReportsAccessesOutOfBounds) {
  expect_fault("  phase p groups 3\n    let v = x[group + 6]\n", "phase p, group 2",
               "argument x[8] is read outside its range 0 .. 8");
  expect_fault("  phase p groups 1\n    x[-1] = 0f32\n", "phase p, group 0",
               "argument x[-1] is written outside its range 0 .. 8");
  expect_fault("  phase p groups 1\n    s[4] = 0f32\n", "phase p, group 0", "scratch s[4] is written outside its range 0 .. 4");
  expect_fault("  phase p groups 1\n    let v = t[9223372036854775807]\n", "phase p, group 0",
               "is read outside its range 0 .. 4");
}

TEST(Simulator, ReportsReadsOfUnwrittenScratch) {
  expect_fault("  phase p groups 1\n    s[0] = 1f32\n    let v = s[1]\n", "phase p, group 0",
               "scratch s[1] is read before this group");
  expect_fault("  phase p groups 3\n    s[0] = 1f32 if group == 0\n    let v = s[0] if group == 2 else 0f32\n",
               "phase p, group 2", "scratch s[0] is read before this group");
  expect_fault("  phase p groups 1\n    s[0] = 1f32\n  phase q groups 1\n    let v = s[0]\n", "phase q, group 0",
               "is read before this group");
  expect_fault("  phase p groups 2\n    t[group] = 1f32\n  phase q groups 4\n    let v = t[group]\n", "phase q, group 2",
               "scratch t[2] is read before any group");
  EXPECT_EQ(fault("  phase p groups 4\n    t[group] = 1f32\n  phase q groups 4\n    let v = t[3 - group]\n"), "none");
}

TEST(Simulator, ReportsRacesAndDoubleStores) {
  expect_fault("  phase p groups 2\n    x[0] = 1f32\n", "phase p, group 1", "argument x[0] is stored twice: group 0");
  expect_fault("  phase p groups 3\n    t[group % 2] = 1f32\n", "phase p, group 2", "scratch t[0] is stored twice: group 0");
  expect_fault("  phase p groups 3\n    x[group] = (x[group - 1] if group > 0 else 0f32)\n", "phase p, group 1",
               "argument x[0] is read, and written by group 0 of the same phase");
  expect_fault("  phase p groups 3\n    x[group] = x[group + 1]\n", "phase p, group 1",
               "argument x[1] is written, and read by group 0 of the same phase");
  expect_fault(
      "  phase a groups 1\n    t[0] = 1f32\n    t[1] = 1f32\n  phase p groups 3\n    t[0] = 1f32 if group == 0\n"
      "    let v = t[0] if group == 2 else 0f32\n",
      "phase p, group 2", "scratch t[0] is read, and written by group 0");
  expect_fault("  phase p groups 4\n    let v = x[5] if group < 3 else 0f32\n    x[5] = 1f32 if group == 3\n", "phase p, group 3",
               "argument x[5] is written, and read by group 0");
}

TEST(Simulator, WatchesAliasedArgumentsTogether) {
  std::vector<float> x(4, 1);
  const std::string in_out = "kernel k\n  buffer x: f32 read = argument(0)\n  buffer y: f32 write = argument(1)\n";
  run(in_out + "  phase p groups 4\n    y[group] = x[group]\n", {memory(x), memory(x)});
  EXPECT_THROW(run(in_out + "  phase p groups 4\n    y[group] = x[3 - group]\n", {memory(x), memory(x)}), InternalError);
}

TEST(Simulator, WorkersAlternateAndScratchIsPoisoned) {
  std::vector<std::int64_t> w(4);
  std::vector<float> s(4), t(3);
  run("kernel k\n  buffer w: i64 write = argument(0)\n  buffer s: f32 read_write = worker_scratch[2]\n"
      "  buffer t: f32 read_write = launch_scratch[3]\n  phase p groups 4\n    w[group] = worker\n    s[1] = f32(group)\n",
      {memory(w), memory(s), memory(t)});
  EXPECT_EQ(w, (std::vector<std::int64_t>{0, 1, 0, 1}));
  EXPECT_EQ(s[1], 2);
  EXPECT_EQ(s[3], 3);
  for (float v : {s[0], s[2], t[0], t[2]}) EXPECT_EQ(std::bit_cast<std::uint32_t>(v), 0xffffffffu);
  EXPECT_EQ(simulate(parse("kernel k\n"))->workers(), 2);
}

TEST(Simulator, RefusesWhatIsNotExpanded) {
  EXPECT_THROW(simulate(parse("kernel k\n  phase p groups 1\n    let v = exp(1f32)\n")), InternalError);
  EXPECT_THROW(simulate(parse("kernel k\n  phase p groups 1\n    let v = clamp(1, 2, 3)\n")), InternalError);
}

TEST(Simulator, CallsTheLibraryInDoublePrecision) {
  std::vector<double> y(3);
  run("kernel k\n  buffer y: f64 write = argument(0)\n  phase p groups 1\n    y[0] = exp(0.3f64)\n    y[1] = pow(3f64, 0.7f64)\n"
      "    y[2] = sin(1e+10f64)\n",
      {memory(y)});
  EXPECT_EQ(y[0], std::exp(0.3));
  EXPECT_EQ(y[1], std::pow(3.0, 0.7));
  EXPECT_EQ(y[2], std::sin(1e10));
}

TEST(Simulator, RunsInTheDefaultFloatingPointState) {
  std::vector<float> y(1);
  const auto k =
      simulate(parse("kernel k\n  buffer y: f32 read_write = argument(0)\n  phase p groups 1\n    y[0] = y[0] / 3f32\n"));
  std::fesetround(FE_UPWARD);
  y[0] = 1;
  k->run({{memory(y)}, {}});
  const int after = std::fegetround();
  std::fesetround(FE_TONEAREST);
  EXPECT_EQ(after, FE_UPWARD);
  EXPECT_EQ(y[0], 1.0f / 3.0f);
}

// ---- every operation against ops::reference -------------------------------------------------------------------------

// Edges of every format and random bits, as elements in memory.
std::vector<std::uint64_t> samples(DType t, std::mt19937_64& random) {
  std::vector<std::uint64_t> bits;
  if (is_bool(t)) return {0, 1};
  const int width = 8 * byte_size(t);
  for (int i = 0; i < width; i += width > 16 ? 3 : 1)
    bits.push_back(std::uint64_t{1} << i), bits.push_back(~std::uint64_t{0} << i);
  for (std::int64_t i : {0, 1, 2, 3, 7, -1, -2, -3, -7}) {
    bits.push_back(static_cast<std::uint64_t>(i));
    if (is_float(t)) {
      std::uint64_t b = 0;
      ops::store(t, &b, {ops::round_to(t, i * 0.75)});
      bits.push_back(b);
    }
  }
  if (is_float(t))
    for (double v :
         {0.0, -0.0, 1e300, -1e300, std::numeric_limits<double>::quiet_NaN(), 0.5, 1.5, 2.5, -0.5, 2147483648.0, 1e19}) {
      std::uint64_t b = 0;
      ops::store(t, &b, {ops::round_to(t, v)});
      bits.push_back(b);
    }
  for (int i = 0; i < 40; ++i) bits.push_back(random());
  return bits;
}

struct Column {  // an array of one type, one sample an element
  DType type;
  std::vector<unsigned char> bytes;
  Column(DType t, std::size_t n) : type(t), bytes(n * static_cast<std::size_t>(byte_size(t))) {}
  std::size_t size() const { return bytes.size() / static_cast<std::size_t>(byte_size(type)); }
  unsigned char* at(std::size_t i) { return &bytes[i * static_cast<std::size_t>(byte_size(type))]; }
  Memory memory() { return {bytes.data(), 0, static_cast<std::int64_t>(size())}; }
};

// r[group] = op(x0[group], ...) held against `expected`, bit for bit but for the bits of NaNs.
template <class Expected>
void compare(const std::string& call, std::vector<Column>& args, DType result, Expected expected) {
  Column r(result, args[0].size());
  std::string text = "kernel k\n";
  std::vector<Memory> buffers;
  for (std::size_t a = 0; a < args.size(); ++a) {
    text += fmt::format("  buffer x{}: {} read = argument({})\n", a, name(args[a].type), a);
    buffers.push_back(args[a].memory());
  }
  buffers.push_back(r.memory());
  text +=
      fmt::format("  buffer r: {} write = argument(9)\n  phase p groups {}\n    r[group] = {}\n", name(result), r.size(), call);
  run(text, buffers);
  for (std::size_t i = 0; i < r.size(); ++i) {
    ops::Scalar values[3];
    for (std::size_t a = 0; a < args.size(); ++a) values[a] = ops::load(args[a].type, args[a].at(i));
    const ops::Scalar want = expected(values, i);
    Column bits(result, 1);
    ops::store(result, bits.at(0), want);
    if (is_float(result) && std::isnan(want.f))
      EXPECT_TRUE(std::isnan(ops::load(result, r.at(i)).f));
    else
      EXPECT_EQ(std::memcmp(bits.at(0), r.at(i), bits.bytes.size()), 0)
          << call << " on " << name(args.back().type) << ": " << values[0].f << " " << values[1].f << " " << values[0].i << " "
          << values[1].i;
  }
}

TEST(Simulator, OperationsAreTheReference) {
  std::mt19937_64 random(11);
  for (const DType t : {DType::f32_, DType::f64_, DType::i32_, DType::i64_, DType::u32_, DType::bool_})
    for (int o = 0; o < ops::op_count; ++o) {
      const Op op = static_cast<Op>(o);
      const ops::OpInfo& row = ops::info(op);
      const bool logical = row.typing == ops::Typing::logical;
      if (row.kind != ops::Kind::primitive || op == Op::cast || op == Op::bits || logical != is_bool(t)) continue;
      if (!(is_float(t) ? row.on_floats : row.on_integers)) continue;
      const std::vector<std::uint64_t> one = samples(t, random);
      std::vector<Column> args;
      std::string call = std::string(row.name) + "(";
      for (int a = 0; a < row.arity; ++a) {
        const bool condition = op == Op::where && a == 0;
        const std::vector<std::uint64_t> choices = condition ? std::vector<std::uint64_t>{0, 1} : one;
        Column& c = args.emplace_back(condition ? DType::bool_ : t, one.size() * one.size());
        for (std::size_t i = 0; i < c.size(); ++i) {
          const std::size_t pick = a == 0 ? i % one.size() : a == 1 ? i / one.size() : random() % one.size();
          std::memcpy(c.at(i), &choices[pick % choices.size()], static_cast<std::size_t>(byte_size(c.type)));
        }
        call += fmt::format("{}x{}[group]", a ? ", " : "", a);
      }
      const bool test = row.typing == ops::Typing::comparison || row.typing == ops::Typing::test;
      const DType result = test ? DType::bool_ : t;
      compare(call + ")", args, result, [&](const ops::Scalar* v, std::size_t) { return ops::reference(op, t, result, v); });
    }
}

TEST(Simulator, ConversionsAreTheReference) {
  std::mt19937_64 random(12);
  for (int f = 0; f < dtype_count; ++f)
    for (int r = 0; r < dtype_count; ++r) {
      const DType from = static_cast<DType>(f), to = static_cast<DType>(r);
      const std::vector<std::uint64_t> bits = samples(from, random);
      std::vector<Column> args = {Column(from, bits.size())};
      for (std::size_t i = 0; i < bits.size(); ++i)
        std::memcpy(args[0].at(i), &bits[i], static_cast<std::size_t>(byte_size(from)));
      compare(fmt::format("{}(x0[group])", name(to)), args, to,
              [&](const ops::Scalar* v, std::size_t) { return ops::cast(from, to, *v); });
      if (byte_size(from) == byte_size(to))
        compare(fmt::format("bits_{}(x0[group])", name(to)), args, to,
                [&](const ops::Scalar*, std::size_t i) { return ops::load(to, args[0].at(i)); });
    }
}

TEST(Simulator, LanesExecuteTogether) {
  const std::string text = R"(kernel rows
  param cols: i64 = extent(0)
  buffer x: f32 read = argument(0)
  buffer y: f32 write = argument(1)
  buffer s: f32 write = argument(2)
  phase sums groups 2 lanes 4
    for j in 0 .. (cols + 3) // 4 carry part = 0f32 gives own
      let at = j * 4 + lane
      let v = x[group * cols + at] if at < cols else 0f32
      y[group * cols + at] = v * 2f32 if at < cols
      next part + v
    let two = own + swap(own, 2)
    let all = two + swap(two, 1)
    s[group] = first(all)
)";
  EXPECT_EQ(print(parse(text)), text);
  std::vector<float> x = {1, 2, 3, 4, 5, 10, 20, 30, 40, 50}, y(10), s(2);
  run(text, {memory(x), memory(y), memory(s)}, {5});
  EXPECT_EQ(s, (std::vector<float>{15, 150}));
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_EQ(y[i], 2 * x[i]);
}

TEST(Simulator, LanesThatStoreToOneElementAreReported) {
  expect_fault("  phase p groups 1 lanes 4\n    x[lane // 2] = 1f32\n", "phase p, group 0", "stored twice: by lanes 0 and 1");
  EXPECT_EQ(fault("  phase p groups 1 lanes 4\n    x[lane // 2] = 1f32 if lane % 2 == 0\n"), "none");
}

TEST(Simulator, LanesThatDisagreeOnAUniformValueAreReported) {
  expect_fault("  phase p groups 1 lanes 4\n    x[0] = first(f32(lane))\n", "phase p, group 0", "lanes 0 and 1 disagree");
}

}  // namespace
}  // namespace cosmati::kernel
