// Programs that must be refused, and the whole text of each refusal: tests/prove/error/*.tile, whose first line holds it.
// COSMATI_BLESS=1 rewrites those lines.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "language/source.h"
#include "prove/prove.h"

namespace cosmati {
namespace {

std::string refusal_of(const std::string& text) {
  try {
    for (const auto& source : language::parse(text, "t"))
      prove::require_proven(source->instantiate(language::sample_bindings(source->signature())[0]));
  } catch (const Error& e) {
    std::string what = e.what();
    if (what.rfind("t:", 0) == 0) what = what.substr(2);
    const std::string code(name(e.code));
    const std::size_t at = what.find(code + ": ");
    // "line:column: code: text" is written as "code line:column: text".
    return code + " " + what.substr(0, at) + what.substr(at + code.size() + 2);
  }
  return "none";
}

TEST(ProveErrors, Texts) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(COSMATI_SOURCE_DIR "/tests/prove/error")) {
    if (entry.path().extension() != ".tile") continue;
    ++files;
    std::ifstream in(entry.path());
    std::stringstream all;
    all << in.rdbuf();
    const std::string text = all.str(), first = text.substr(0, text.find('\n'));
    const std::string now = "# error: " + refusal_of(text);
    if (std::getenv("COSMATI_BLESS")) {
      std::ofstream(entry.path()) << now << text.substr(text.find('\n'));
    } else {
      EXPECT_EQ(now, first) << entry.path();
    }
  }
  EXPECT_GE(files, 20);
}

}  // namespace
}  // namespace cosmati
