// tests/error/*.tile: the first line of each says which error its program gets, `# error: CODE line:column: text`, where the
// text is the beginning of message, origin and hint. The program may fail at any of its sample bindings.
// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "language/source.h"

namespace cosmati::language {
namespace {

std::optional<Error> first_error(const std::string& text) {
  try {
    for (const auto& source : parse(text, "t.tile"))
      for (const Binding& binding : sample_bindings(source->signature())) source->instantiate(binding);
  } catch (const Error& e) {
    return e;
  }
  return std::nullopt;
}

class ErrorText : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(ErrorText, IsWhatTheFirstLineSays) {
  std::ifstream file(GetParam(), std::ios::binary);
  std::stringstream stream;
  stream << file.rdbuf();
  const std::string text = stream.str();
  const std::string prefix = "# error: ";
  ASSERT_EQ(text.substr(0, prefix.size()), prefix);
  std::string expected = text.substr(prefix.size(), text.find('\n') - prefix.size());
  const std::optional<Error> error = first_error(text);
  ASSERT_TRUE(error) << "no error, expected " << expected;
  std::string what = error->what();
  what = what.substr(0, what.find(name(error->code)));  // file:line:column:
  const std::string got = fmt::format("{} {}:{}: {}", name(error->code), error->where.line, error->where.column,
                                      std::string(error->what()).substr(what.size() + name(error->code).size() + 2));
  EXPECT_EQ(got.substr(0, expected.size()), expected) << got;
  EXPECT_EQ(error->where.file, "t.tile");
}

std::vector<std::filesystem::path> files() {
  std::set<std::filesystem::path> result;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(COSMATI_SOURCE_DIR) + "/tests/error"))
    if (entry.path().extension() == ".tile") result.insert(entry.path());
  return {result.begin(), result.end()};
}

INSTANTIATE_TEST_SUITE_P(Files, ErrorText, testing::ValuesIn(files()),
                         [](const auto& info) { return info.param.stem().string(); });

}  // namespace
}  // namespace cosmati::language
