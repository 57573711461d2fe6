// Arguments of the command line: forms, element types that files cannot name, and what is refused.
// SPDX-License-Identifier: Apache-2.0
#include "tools/arguments.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "tests/tools/temporary.h"

namespace cosmati::tools {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class ArgumentsTest : public testing::Test {
 protected:
  std::string file(DType t, const std::vector<std::int64_t>& shape, const std::string& name = "a.npy") {
    NpyWriter(folder_ / name, make_array(t, shape, "a").view).commit();
    return folder_ / name;
  }
  std::string refusal(const std::vector<std::string>& texts) {
    try {
      Bindings(program_, texts, 0);
    } catch (const Error& e) {
      EXPECT_EQ(e.code, ErrorCode::bad_argument);
      return e.what();
    }
    return "accepted";
  }
  TemporaryFolder folder_;
  Program program_ = parse(
                         "program f<T: float, I: int>(in x: T[row, col], in n: I[row], in w: bf16[col], out y: T[row, col], k: "
                         "f32, b: i32 = 2) {\n"
                         "  parallel row { y[row, col] = T(f32(x) * k + f32(w)) + T(f32(n)) }\n}\n")
                         .front();
  const std::vector<std::string> rest_ = {"n=i32[2]:arange", "w=bf16[3]:ones", "k=0.5"};
  std::vector<std::string> with(const std::string& x) const {
    std::vector<std::string> all = rest_;
    all.push_back(x);
    return all;
  }
};

TEST_F(ArgumentsTest, GeneratedArraysAndScalarsComeInDeclaredOrder) {
  const Arguments a = Bindings(program_, with("x=f16[2, 3]:normal"), 0).arguments();
  std::vector<std::string> names;
  for (const auto& [name, value] : a) names.push_back(name);
  EXPECT_THAT(names, ElementsAre("x", "n", "w", "k"));
  EXPECT_EQ(std::get<TensorView>(a[0].second).dtype, DType::f16_);
  EXPECT_THAT(std::get<TensorView>(a[0].second).shape, ElementsAre(2, 3));
  EXPECT_EQ(std::get<double>(a[3].second), 0.5);
}

TEST_F(ArgumentsTest, ScalarsKeepTheirForm) {
  auto k = [&](const std::string& text) {
    return Bindings(program_, {"x=f32[2,3]:ones", rest_[0], rest_[1], "k=" + text}, 0).arguments()[3].second;
  };
  EXPECT_EQ(std::get<std::int64_t>(k("-3")), -3);
  EXPECT_EQ(std::get<double>(k("-3.0")), -3);
  EXPECT_EQ(std::get<double>(k("1e-5")), 1e-5);
  EXPECT_EQ(std::get<double>(k("-inf")), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(std::get<bool>(k("true")), true);
}

TEST_F(ArgumentsTest, FilesWithoutATypeNameTakeTheParametersType) {
  auto x_type = [&](const std::string& text) {
    return std::get<TensorView>(Bindings(program_, with(text), 0).arguments()[0].second).dtype;
  };
  EXPECT_EQ(x_type("x=" + file(DType::f32_, {2, 3})), DType::f32_);
  EXPECT_EQ(x_type("x=" + file(DType::u16_, {2, 3})), DType::bf16_);
  EXPECT_EQ(x_type("x=f16:" + file(DType::u16_, {2, 3})), DType::f16_);
  EXPECT_EQ(x_type("x=f8e5m2:" + file(DType::u8_, {2, 3})), DType::f8e5m2_);
  const std::string w = file(DType::u16_, {3}, "w.npy");
  const Bindings b(program_, {"x=f32[2,3]:ones", "n=i32[2]:ones", "w=" + w, "k=1"}, 0);
  EXPECT_EQ(b.find("w")->dtype, DType::bf16_);
  // An integer parameter takes the same file as it is.
  EXPECT_EQ(Bindings(program_, {"x=f32[3,3]:ones", "n=" + w, rest_[1], "k=1"}, 0).find("n")->dtype, DType::u16_);
}

TEST_F(ArgumentsTest, WhatCannotBeMeantIsRefused) {
  EXPECT_THAT(refusal(with("x=" + file(DType::u8_, {2, 3}))), HasSubstr("x=f8e4m3:FILE"));
  EXPECT_THAT(refusal(with("x=bf16:" + file(DType::f32_, {2, 3}))), HasSubstr("f32 elements cannot be read as bf16"));
  EXPECT_THAT(refusal(rest_), HasSubstr("needs x: T[row, col]"));
  EXPECT_THAT(refusal(with("z=f32[2,3]:ones")), HasSubstr("no parameter 'z'"));
  EXPECT_THAT(refusal(with("k=1")), HasSubstr("twice"));
  EXPECT_THAT(refusal(with("x=f32[2,3]:noise")), HasSubstr("no generator 'noise'"));
  EXPECT_THAT(refusal(with("x=f32[2,]:ones")), HasSubstr("not a shape"));
  EXPECT_THAT(refusal(with("x=f32[,2]:ones")), HasSubstr("not a shape"));
  EXPECT_THAT(refusal(with("x=f32[2 3]:ones")), HasSubstr("not a shape"));
  EXPECT_THAT(refusal(with("x=f32[99999999999999999999]:ones")), HasSubstr("64 bits"));
  EXPECT_THAT(refusal(with("x=")), HasSubstr("name=value"));
  EXPECT_THAT(refusal({"x=f32[2,3]:ones", rest_[0], rest_[1], "k=abc"}), HasSubstr("not a number"));
  EXPECT_THAT(refusal({"x=f32[2,3]:ones", rest_[0], rest_[1], "k=1e999"}), HasSubstr("64 bits"));
}

TEST_F(ArgumentsTest, AnotherFormThanTheParametersIsSaidAndWhatIsLegal) {
  auto says = [&](const std::string& x, const std::string& what, const std::string& hint) {
    EXPECT_THAT(refusal(with(x)), AllOf(HasSubstr(what), HasSubstr("Hint: " + hint)));
  };
  const std::string legal = "give x=FILE.npy, or generated as in x=f32[37,1537]:normal";
  says("x=f31[2,3]:zeros", "x: there is no type 'f31'", "did you mean f32");
  says("x=float32[2,3]:zeros", "x: there is no type 'float32'", "did you mean f32");
  says("x=quux[2,3]:zeros", "x: there is no type 'quux'", "the types are bool, i8");
  says("x=f31:" + file(DType::f32_, {2, 3}), "x: there is no type 'f31'", "did you mean f32");
  for (const char* scalar : {"3", "-0.5", "1e9", "true", "nan"})
    says(std::string("x=") + scalar, std::string("x is a tensor T[row, col], but the scalar ") + scalar + " is given", legal);
  says("x=f32:normal", "x is a tensor T[row, col], but 'f32:normal' says no extents", legal);
  says("x=normal", "x is a tensor T[row, col], but 'normal' says no type and extents", legal);
  EXPECT_THAT(refusal({"x=f32[2,3]:ones", rest_[0], rest_[1], "k=f32[]:ones"}),
              AllOf(HasSubstr("k is a scalar f32, but 'f32[]:ones' is not a number, true or false"), HasSubstr("give k=NUMBER")));
  EXPECT_THAT(refusal({rest_[0], "w=0.5"}), HasSubstr("generated as in w=bf16[1537]:normal"));
  EXPECT_THAT(refusal({rest_[1], "n=0"}), HasSubstr("generated as in n=i32[1537]:uniform"));
  // A file of that name is a file.
  TemporaryFolder inside;
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(inside / "");
  NpyWriter("3", make_array(DType::f32_, {2, 3}, "a").view).commit();
  EXPECT_EQ(refusal(with("x=3")), "accepted");
  std::filesystem::current_path(before);
}

TEST_F(ArgumentsTest, FilesThatAreMissingAreNamedWithWhatIsLegal) {
  try {
    const Bindings accepted(program_, with("x=none.npy"), 0);
    ADD_FAILURE() << "accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.code, ErrorCode::bad_file);
    EXPECT_EQ(e.where.file, "none.npy");
    EXPECT_THAT(e.what(), HasSubstr("no such file to read x from. Hint: give x=FILE.npy"));
  }
}

TEST_F(ArgumentsTest, RefusalsNameThePlaceOfTheParameter) {
  auto line_and_column = [&](const std::vector<std::string>& texts) {
    try {
      Bindings(program_, texts, 0);
    } catch (const Error& e) {
      return std::pair(e.where.line, e.where.column);
    }
    return std::pair(0, 0);
  };
  EXPECT_EQ(line_and_column(rest_), std::pair(1, 32));
  EXPECT_EQ(line_and_column(with("x=3")), std::pair(1, 32));
  EXPECT_EQ(line_and_column(with("n=i32[2]:ones")), std::pair(1, 51));
  EXPECT_EQ(line_and_column(with("z=3")), std::pair(1, 9));
}

TEST_F(ArgumentsTest, GeneratingTellsHowMuchIsDone) {
  const Program p =
      parse("program f(in x: f32[i], in y: i32[i], out z: f32[i]) {\n  parallel i { z[i] = x + f32(y) }\n}\n").front();
  std::vector<double> told;
  const Bindings all(p, {"x=f32[4000000]:uniform", "y=i32[4000000]:arange"}, 0, [&](double done) { told.push_back(done); });
  EXPECT_GE(told.size(), 8u);
  EXPECT_TRUE(std::is_sorted(told.begin(), told.end()));
  EXPECT_EQ(told.front(), 0);
  EXPECT_GT(told.back(), 0.8);
  EXPECT_LE(told.back(), 1);
}

TEST_F(ArgumentsTest, BytesMovedCountEachTensorOnceADirection) {
  const Program p = parse(
                        "program f(in x: f32[i], inout y: f32[i], out z: f64[i]) {\n  parallel i {\n    y[i] = y + x\n    z[i] = "
                        "f64(x)\n  }\n}\n")
                        .front();
  Bindings b(p, {"x=f32[10]:ones", "y=f32[10]:ones", "z=f64[10]:zeros"}, 0);
  EXPECT_EQ(b.moved_bytes(), 40 + 2 * 40 + 80);
  const Bindings copy = b.copy_written();
  EXPECT_EQ(copy.find("x")->data, b.find("x")->data);
  EXPECT_NE(copy.find("y")->data, b.find("y")->data);
  EXPECT_EQ(std::memcmp(copy.find("y")->data, b.find("y")->data, 40), 0);
}

}  // namespace
}  // namespace cosmati::tools
