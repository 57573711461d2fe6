// Every program of the language page and every shipped program, at all of its sample bindings: its text instantiates, prints, and
// the printed text instantiates to a program that prints the same.
// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "language/source.h"

namespace cosmati::language {
namespace {

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string source_dir() { return COSMATI_SOURCE_DIR; }

void expect_round_trip(const Source& source) {
  for (const Binding& binding : sample_bindings(source.signature())) {
    const ir::Program program = source.instantiate(binding);
    const std::string text = print(program);
    SCOPED_TRACE(text);
    const auto again = parse(text, "printed");
    ASSERT_EQ(again.size(), 1u);
    const ir::Program second = again[0]->instantiate({});
    EXPECT_EQ(print(second), text);
    EXPECT_EQ(second.stores.size(), program.stores.size());
    EXPECT_EQ(second.streams.size(), program.streams.size());
    EXPECT_EQ(second.program_axes.size(), program.program_axes.size());
  }
}

TEST(RoundTrip, EveryProgramOfTheLanguagePage) {
  const auto programs = parse(read(source_dir() + "/tests/programs/language_page.tile"), "language_page.tile");
  EXPECT_EQ(programs.size(), 28u);
  for (const auto& program : programs) {
    SCOPED_TRACE(program->signature().name);
    expect_round_trip(*program);
  }
}

TEST(RoundTrip, EveryShippedProgram) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(source_dir() + "/programs")) {
    const std::string text = read(entry.path());
    EXPECT_EQ(text[0], '#') << entry.path() << " starts with its formula";
    const auto programs = parse(text, entry.path().filename());
    ASSERT_EQ(programs.size(), 1u) << entry.path();
    EXPECT_EQ(programs[0]->signature().name, entry.path().stem());
    names.insert(programs[0]->signature().name);
    SCOPED_TRACE(entry.path());
    expect_round_trip(*programs[0]);
  }
  EXPECT_GE(names.size(), 26u);
}

}  // namespace
}  // namespace cosmati::language
