// Every mistake that a program in C++ can make: its code, its text, and the file and line of the user's expression, also where
// the mistake is found inside a template or an inline function of the header.
// SPDX-License-Identifier: Apache-2.0
#include <cosmati/cosmati.h>

#include <filesystem>
#include <functional>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cosmati {
namespace {

using testing::HasSubstr;

int here = 0;  // the line of the mistake, set on that line before it is made

void expect_error(ErrorCode code, const std::string& text, const std::function<void()>& act) {
  here = 0;
  try {
    act();
    FAIL() << "nothing was refused";
  } catch (const Error& e) {
    EXPECT_EQ(name(e.code), name(code)) << e.what();
    EXPECT_THAT(e.what(), HasSubstr(text));
    EXPECT_EQ(std::filesystem::path(e.where.file).filename(), "errors_test.cpp") << e.what();
    EXPECT_EQ(e.where.line, here) << e.what();
    EXPECT_GT(e.where.column, 0) << e.what();
  }
}
void refused(ErrorCode code, const std::string& text, const std::function<void()>& body) {
  expect_error(code, text, [&] { check(program("p", body)); });
}

// The parts that most programs here share.
struct Rows {
  Axis row{"row"}, col{"col"}, c{"c"}, n{"n"};
  Input x = input<f32>("x", {row, col}), g = input<f32>("g", {c}), z = input<f32>("z", {n});
  Output y = output<f32>("y", {row, col}), s = output<f32>("s", {row}), t = output<f32>("t", {col});
};

TEST(CaptureErrors, ExtraAxis) {
  refused(ErrorCode::extra_axis, "value stored to y has axis c, which the index does not name", [] {
    Rows r;
    parallel(r.row, [&] {
      Tile product = r.x * r.g;
      here = __LINE__, r.y(r.row, r.col) = product;
    });
  });
}

TEST(CaptureErrors, NoSuchAxis) {
  refused(ErrorCode::no_such_axis, "sum over n, but the value has no axis n (it has row, col)", [] {
    Rows r;
    parallel(r.row, [&] { here = __LINE__, sum(r.x, r.n); });
  });
  refused(ErrorCode::no_such_axis, "no axis n", [] {
    Rows r;
    parallel(r.row, [&] { here = __LINE__, r.s(r.row) = r.x.at(r.n, 0).otherwise(0); });
  });
  refused(ErrorCode::no_such_axis, "no axis n", [] {
    Rows r;
    parallel(r.row, [&] { here = __LINE__, contract(r.x, r.x, r.n, relax::narrow); });
  });
}

TEST(CaptureErrors, OfThePreludeAreAtTheCall) {
  refused(ErrorCode::no_such_axis, "max over n, but the value has no axis n", [] {
    Rows r;
    parallel(r.row, [&] { here = __LINE__, attend(r.x, r.x, r.n); });
  });
  refused(ErrorCode::type_mismatch, "", [] {
    Rows r;
    auto b = input<boolean>("b", {r.row});
    parallel(r.row, [&] { here = __LINE__, gelu(b); });
  });
  refused(ErrorCode::no_such_axis, "", [] {  // and after a call the lines are the user's again
    Rows r;
    parallel(r.row, [&] {
      gelu(r.x);
      here = __LINE__, sum(r.x, r.n);
    });
  });
}

TEST(CaptureErrors, UnfinishedReduction) {
  refused(ErrorCode::unfinished_reduction, "sum(x, row) exists only when every instance of row has finished", [] {
    Rows r;
    parallel(r.row, [&] {
      Tile total = sum(r.x, r.row);
      here = __LINE__, r.x - total;
    });
  });
}

TEST(CaptureErrors, UnfinishedReductionAboveParallel) {
  refused(ErrorCode::unfinished_reduction, "sum(x, row) exists only when every instance of row has finished", [] {
    Rows r;
    Tile total = sum(r.x, r.row);
    parallel(r.row, [&] { here = __LINE__, r.x - total; });
  });
}

TEST(CaptureErrors, StoreConflict) {
  refused(ErrorCode::store_conflict, "every instance of row would store t[col]", [] {
    Rows r;
    parallel(r.row, [&] { here = __LINE__, r.t(r.col) = r.x; });
  });
}

TEST(CaptureErrors, PartialOut) {
  refused(ErrorCode::partial_out, "out y", [] {
    Axis row{"row"};
    auto y = output<f32>("y", {row, 2});
    parallel(row, [&] { here = __LINE__, y(row, 0) = 1; });
  });
}

TEST(CaptureErrors, OutThatIsNeverStored) {
  refused(ErrorCode::partial_out, "out y is never stored", [] {
    Axis row{"row"};
    here = __LINE__, output<f32>("y", {row});
    parallel(row, [] {});
  });
}

TEST(CaptureErrors, OutOfBounds) {
  refused(ErrorCode::out_of_bounds, "leaves its extents", [] {
    Rows r;
    parallel(r.row, [&] {
      r.s(r.row) = r.x(r.row, 0).otherwise(0), r.t(r.col) = sum(r.x, r.row);
      here = __LINE__, r.y(r.row, r.col) = r.x(r.row, r.col + 1);
    });
  });
}

TEST(CaptureErrors, UnprovedGather) {
  refused(ErrorCode::unproved_gather, "nothing says label < extent(col)", [] {
    Axis row{"row"}, col{"col"};
    auto x = input<f32>("x", {row, col});
    auto label = input<i32>("label", {row});
    auto y = output<f32>("y", {row});
    parallel(row, [&] { here = __LINE__, y(row) = x(row, label); });
  });
}

TEST(CaptureErrors, CutDependent) {
  refused(ErrorCode::cut_dependent, "where the stream over col is cut", [] {
    Axis row{"row"}, col{"col"};
    auto x = input<f32>("x", {row, col});
    auto y = output<f32>("y", {row});
    parallel(row, [&] {
      here = __LINE__ + 1;
      auto [count] = stream(tiles(col), carry(0.0), [&](Tile m) { return next(m + max(x, col) * 0 + 1); });  // counts the pieces
      y(row) = count;
    });
  });
}

TEST(CaptureErrors, ReducerLaw) {
  refused(ErrorCode::reducer_law, "", [] {
    Axis row{"row"}, col{"col"};
    auto x = input<f32>("x", {row, col});
    auto y = output<f32>("y", {row});
    Reducer minus{"minus", [] { return 0.0; }, [](Tile x) { return x; }, [](auto a, auto b) { return a[0] - b[0]; },
                  [](auto s) { return s[0]; }};
    parallel(row, [&] { here = __LINE__, y(row) = minus(x, col); });
  });
}

TEST(CaptureErrors, PartsOfAReducerNameTheirValues) {
  auto average = [](const std::function<Tile(Tile, Tile)>& quotient) {
    return [quotient] {
      Axis row{"row"}, col{"col"};
      auto x = input<f32>("x", {row, col});
      auto w = input<i32>("w", {row, col});
      auto y = output<f32>("y", {row});
      Reducer mean{"average", [] { return next(0.0, 0); }, [](Tile v, Tile n) { return next(v, n); },
                   [](auto a, auto b) { return next(a[0] + b[0], a[1] + b[1]); }, [&](auto s) { return quotient(s[0], s[1]); }};
      parallel(row, [&] { y(row) = mean(x, w, col); });
    };
  };
  refused(ErrorCode::type_mismatch, "state 0 / state 1: state 0 is f32 and state 1 is i32, which do not join",
          average([](Tile total, Tile weight) { return here = __LINE__, total / weight; }));
  refused(ErrorCode::type_mismatch, "sqrt(state 1) needs floats; state 1 is i32",
          average([](Tile, Tile weight) { return here = __LINE__, sqrt(weight); }));
}

TEST(CaptureErrors, RangeOnTileAxis) {
  refused(ErrorCode::range_on_tile_axis, "the range of t depends on col, which is not a program axis", [] {
    Rows r;
    parallel(r.row, [&] {
      here = __LINE__ + 1;
      Axis t("t", 0, r.col + 1);
    });
  });
}

TEST(CaptureErrors, RepeatedAxis) {
  refused(ErrorCode::repeated_axis, "axis row appears twice in the dimensions of w", [] {
    Axis row{"row"};
    here = __LINE__, input<f32>("w", {row, row});
  });
  refused(ErrorCode::repeated_axis, "row", [] {
    Rows r;
    here = __LINE__, parallel(r.row, r.row, [] {});
  });
}

TEST(CaptureErrors, SyntaxIsAProgramWithoutARegion) {
  expect_error(ErrorCode::syntax, "program p has no region",
               [] { here = __LINE__, check(program("p", [] { Axis row{"row"}; })); });
}

TEST(CaptureErrors, UnknownNameIsAnExtentThatNothingBinds) {
  expect_error(ErrorCode::unknown_name, "nothing binds the extent of axis loose", [] {
    check(program("p", [] {
      here = __LINE__ + 1;
      Axis row{"row"}, loose{"loose"};
      auto y = output<f32>("y", {row});
      parallel(row, [&] { y(row) = cast<f32>(loose.extent()); });
    }));
  });
}

TEST(CaptureErrors, TypeMismatch) {
  refused(ErrorCode::type_mismatch, "x[row, col] has 2 dimensions and is indexed with 1", [] {
    Rows r;
    parallel(r.row, [&] { here = __LINE__, r.s(r.row) = r.x(r.row); });
  });
  refused(ErrorCode::type_mismatch, "", [] {
    Rows r;
    parallel(r.row, [&] { here = __LINE__, r.y(r.row, r.col) = r.x + cast<i32>(r.row); });
  });
  refused(ErrorCode::type_mismatch, "", [] {
    Rows r;
    parallel(r.row, [&] { here = __LINE__, where(r.x, 1, 0); });
  });
  refused(ErrorCode::type_mismatch, "", [] {
    Rows r;
    parallel(r.row, [&] { here = __LINE__, r.row / 2; });
  });
  refused(ErrorCode::type_mismatch, "contracts are promises about integers", [] {
    Axis row{"row"};
    auto x = input<f32>("x", {row});
    here = __LINE__, x.in(0, 5);
  });
  refused(ErrorCode::type_mismatch, "contracts are promises about integers", [] {
    Axis row{"row"};
    here = __LINE__, input<f32>("x", {row}).sorted();
  });
  refused(ErrorCode::type_mismatch, "does not fit i8", [] { here = __LINE__, scalar<i8>("m").defaults(300); });
  refused(ErrorCode::type_mismatch, "18446744073709551615 is larger than every i64", [] {
    Axis row{"row"};
    here = __LINE__, row + 18446744073709551615u;
  });
}

TEST(CaptureErrors, Redefined) {
  refused(ErrorCode::redefined, "x is already a parameter", [] {
    Axis row{"row"};
    input<f32>("x", {row});
    here = __LINE__, input<f32>("x", {row});
  });
  refused(ErrorCode::redefined, "eps is already a parameter", [] {
    scalar<f32>("eps");
    here = __LINE__, scalar<f32>("eps");
  });
}

TEST(CaptureErrors, NotSupported) {
  refused(ErrorCode::not_supported, "before parallel", [] {
    Rows r;
    here = __LINE__, r.s(r.row) = 0;
  });
  refused(ErrorCode::not_supported, "region", [] {
    Rows r;
    parallel(r.row, [] {});
    here = __LINE__, parallel(r.col, [] {});
  });
  refused(ErrorCode::not_supported, "", [] {
    Rows r;
    parallel(r.row, [&] { here = __LINE__, input<f32>("late", {r.row}); });
  });
  refused(ErrorCode::not_supported, "x[a + 2] is a + 2, which is not an axis", [] {
    Axis a{"a"};
    auto x = input<f32>("x", {a + 2});
    parallel(a, [&] { here = __LINE__, exp(x); });
  });
  refused(ErrorCode::not_supported, "a dimension is an axis, a constant, axis + constant or {slow, fast}", [] {
    Axis a{"a"};
    here = __LINE__, input<f32>("x", {a * 2});
  });
}

TEST(CaptureErrors, ValuesOfAStreamStayInsideIt) {
  refused(ErrorCode::unknown_name, "", [] {
    Axis b{"b"}, t{"t"};
    auto x = input<f32>("x", {b, t});
    auto y = output<f32>("y", {b});
    parallel(b, [&] {
      Tile kept;
      stream(t, carry(0), [&](Tile h) {
        kept = h + x;
        return next(kept);
      });
      here = __LINE__, y(b) = kept;
    });
  });
}

TEST(CaptureErrors, NothingOfAnEarlierRunOfAStreamsBody) {
  const auto stream_with = [](auto body) {
    return [body] {
      Axis b{"b"}, t{"t"};
      auto x = input<f32>("x", {b, t});
      auto y = output<f32>("y", {b});
      parallel(b, [&] {
        auto [last] = stream(t, carry(0), [&](Tile h) { return body(h, x, t); });  // the type of h is known in the second run
        y(b) = last;
      });
    };
  };
  int runs = 0;
  Tile kept;
  refused(ErrorCode::not_supported, "this value was kept from an earlier run of the body of a stream",
          stream_with([&](Tile h, Input& x, Axis&) {
            if (runs++ == 0) return next(kept = exp(h + x) * 3 + sqrt(x));
            here = __LINE__ + 1;
            return next(h + kept);
          }));
  runs = 0;
  std::optional<Axis> axis;
  refused(ErrorCode::not_supported, "this axis was kept from an earlier run of the body of a stream",
          stream_with([&](Tile h, Input& x, Axis&) {
            if (runs++ == 0) {
              axis.emplace("u", 5);
              return next(h + x);
            }
            here = __LINE__ + 1;
            return next(h + *axis);
          }));
}

TEST(CaptureErrors, NothingOfAnotherCapture) {
  Tile value;
  const Axis* axis = nullptr;
  std::vector<Input> inputs;
  Program first = program("first", [&] {
    static Axis kept{"kept"};
    axis = &kept;
    auto x = input<f32>("x", {kept});
    inputs.push_back(x);
    auto y = output<f32>("y", {kept});
    parallel(kept, [&] { y(kept) = value = exp(x); });
  });
  print(first, {});
  const std::string other = "belongs to another capture";
  refused(ErrorCode::not_supported, other, [&] { here = __LINE__, value + 1; });
  refused(ErrorCode::not_supported, other, [&] { here = __LINE__, sum(1, *axis); });
  refused(ErrorCode::not_supported, other, [&] { here = __LINE__, axis->extent(); });
  refused(ErrorCode::not_supported, other, [&] { here = __LINE__, input<f32>("z", {*axis}); });
  refused(ErrorCode::not_supported, other, [&] { here = __LINE__, parallel(*axis, [] {}); });
  refused(ErrorCode::not_supported, other, [&] { here = __LINE__, exp(inputs[0]); });
  refused(ErrorCode::not_supported, other, [&] { here = __LINE__, exp(inputs[0](0)); });
  refused(ErrorCode::not_supported, other, [&] { here = __LINE__, input("z", like(inputs[0]), {}); });
  refused(ErrorCode::not_supported, other, [&] { here = __LINE__, inputs[0].in(0, 4); });
  expect_error(ErrorCode::not_supported, "inside the body of a program", [&] { here = __LINE__, value + 1; });
  expect_error(ErrorCode::not_supported, "inside the body of a program", [&] { here = __LINE__, input<f32>("z", {}); });
  expect_error(ErrorCode::not_supported, "inside the body of a program", [&] { here = __LINE__, parallel([] {}); });
}

TEST(CaptureErrors, AtLaunch) {
  const Program p = program("p", [] {
    Axis row{"row"}, col{"col"};
    auto x = input<f32>("x", {row, col});
    auto label = input<i32>("label", {row}).in(0, col.extent());
    auto y = output<f32>("y", {row});
    parallel(row, [&] { y(row) = x(row, label); });
  });
  float x[6] = {}, y[2] = {-1, -1};
  std::int32_t label[3] = {0, 3, 0};
  Function f{p, Device::oracle()};
  const auto run = [&](std::int64_t labels) {
    f({{"x", TensorView{x, f32, {2, 3}}}, {"label", TensorView{label, i32, {labels}}}, {"y", TensorView{y, f32, {2}}}});
  };
  const auto code = [&](std::int64_t labels) {
    try {
      run(labels);
    } catch (const Error& e) {
      return std::string(name(e.code)) + ": " + e.message;
    }
    return std::string();
  };
  EXPECT_THAT(code(2), HasSubstr("contract_broken: label[1] = 3 is outside 0 .. 3"));
  EXPECT_THAT(code(3), HasSubstr("extent_mismatch: "));
  EXPECT_EQ(y[0], -1);
  label[1] = 2, x[5] = 7;
  run(2);
  EXPECT_EQ(y[1], 7);
}

}  // namespace
}  // namespace cosmati
