// Any bytes as a program give tile IR or an Error, never a signal, and in time that is linear in the text.
// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstdlib>
#include <random>

#include <gtest/gtest.h>

#include "language/source.h"
#include "tests/file_text.h"

namespace cosmati::language {
namespace {

// Whether the text was accepted. What is accepted must print and read back.
bool accepted(const std::string& text) {
  try {
    for (const auto& source : parse(text, "hostile.tile")) {
      const Binding binding = sample_bindings(source->signature()).at(0);
      const std::string once = print(source->instantiate(binding));
      EXPECT_EQ(print(parse(once, "printed").at(0)->instantiate({})), once) << text;
    }
  } catch (const Error& e) {
    EXPECT_GT(e.where.line, 0) << e.what();
    return false;
  }
  return true;
}

std::string repeat(const std::string& text, std::size_t count) {
  std::string result;
  for (std::size_t i = 0; i < count; ++i) result += text;
  return result;
}
std::string program(const std::string& body) {
  return "program p(in x: f32[i], out y: f32[i]) {\n  parallel i {\n" + body + "\n  }\n}\n";
}

TEST(Hostile, NestingHasALimit) {
  for (std::size_t depth : {150u, 100'000u}) {
    const bool shallow = depth < 200;
    EXPECT_EQ(accepted(program("y[i] = " + repeat("(", depth) + "x" + repeat(")", depth))), shallow);
    EXPECT_EQ(accepted(program("y[i] = " + repeat("-", depth) + "x")), shallow);
    EXPECT_EQ(accepted(program("y[i] = " + repeat("exp(", depth) + "x" + repeat(")", depth))), shallow);
    EXPECT_EQ(accepted(program("y[i] = x" + repeat(" + x", depth))), shallow);
    EXPECT_EQ(accepted(program("y[i] = x[i] else " + repeat("x[i] else ", depth) + "0")), shallow);
  }
  EXPECT_FALSE(accepted(repeat("(", 1'000'000)));
  EXPECT_FALSE(accepted(program("y[i] = x" + repeat("[", 1'000'000))));
  EXPECT_FALSE(accepted(repeat("{", 1'000'000)));
}

TEST(Hostile, LongChainsOfLetsAreRefused) {
  std::string body = "v0 = x\n";
  for (int i = 1; i < 20'000; ++i) body += "v" + std::to_string(i) + " = exp(v" + std::to_string(i - 1) + ")\n";
  EXPECT_FALSE(accepted(program(body + "y[i] = v19999")));
}

TEST(Hostile, DefsThatDoubleAreRefused) {
  std::string defs = "def f0(x) = x + 1\n";
  for (int i = 1; i < 40; ++i) {
    const std::string before = "f" + std::to_string(i - 1);
    defs += "def f" + std::to_string(i) + "(x) = " + before + "(x) * " + before + "(x + 1)\n";
  }
  EXPECT_FALSE(accepted(defs + program("y[i] = f39(x)")));
}

TEST(Hostile, AMegabyteTakesLinearTime) {
  const std::string letters = repeat("y[i] = x * 2.5 + x[i]\n", 45'000);
  std::string defs;
  for (int i = 0; i < 40'000; ++i) defs += "def f" + std::to_string(i) + "(x) = x + " + std::to_string(i) + "\n";
  for (const std::string& text :
       {letters, repeat("# comment\n", 100'000), repeat("1.5 ", 250'000), repeat("\n;", 500'000), std::string(1'000'000, 'a'),
        std::string(1'000'000, '9'), std::string(1'000'000, '\0'), defs, program("y[i] = exp(" + repeat("x, ", 300'000) + "x)"),
        program("y[" + repeat("i, ", 300'000) + "i] = x")}) {
    const auto start = std::chrono::steady_clock::now();
    try {
      parse(text, "large.tile");
    } catch (const Error&) {
    }
    EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), 10) << text.substr(0, 40);
  }
}

class Mutations {
 public:
  Mutations(std::string text, std::uint64_t seed) : text_(std::move(text)), random_(seed) {
    // Programs, so that a mutation meets a whole declaration and not only the first of the file.
    std::size_t at = text_.find("\nprogram ");
    prelude_ = text_.substr(0, at);
    while (at != std::string::npos) {
      const std::size_t end = text_.find("\n}\n", at);
      programs_.push_back(text_.substr(at + 1, end + 2 - at));
      at = text_.find("\nprogram ", end);
    }
  }
  std::string next() {
    std::string text = programs_[below(programs_.size())];
    for (std::size_t k = 1 + below(3); k > 0 && !text.empty(); --k) mutate(text);
    return text;
  }

 private:
  std::size_t below(std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random_); }
  // A token-like piece of some program.
  std::string piece() {
    const std::string& from = programs_[below(programs_.size())];
    const std::size_t at = below(from.size());
    const std::size_t end = from.find_first_of(" ,()[]\n", at + 1);
    return from.substr(at, end - at);
  }
  void mutate(std::string& text) {
    const std::size_t at = below(text.size());
    switch (below(6)) {
      case 0:
        text[at] = static_cast<char>(below(256));
        break;
      case 1:
        text.erase(at, 1 + below(8));
        break;
      case 2:
        text.insert(at, piece());
        break;
      case 3:
        text.insert(at, 1, "()[]{}=+-*/<>.,:;#&|^%\n "[below(24)]);
        break;
      case 4:
        text.replace(at, std::min(text.size() - at, 1 + below(4)), piece());
        break;
      default:
        text.resize(at);
    }
  }

  std::string text_, prelude_;
  std::vector<std::string> programs_;
  std::mt19937_64 random_;
};

TEST(Hostile, MutationsOfProgramsGiveAnErrorOrAProgram) {
  const char* longer = std::getenv("COSMATI_FUZZ_CASES");
  const int cases = longer ? std::atoi(longer) : 4000;
  const char* seed = std::getenv("COSMATI_FUZZ_SEED");
  Mutations mutations(file_text("tests/programs/language_page.tile"), seed ? std::strtoull(seed, nullptr, 10) : 1);
  int ok = 0;
  for (int i = 0; i < cases && !testing::Test::HasFailure(); ++i) ok += accepted(mutations.next());
  EXPECT_GT(ok, cases / 50) << "the mutations are too strong to say anything";
}

}  // namespace
}  // namespace cosmati::language
