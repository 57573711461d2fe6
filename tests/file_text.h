// A file of the tree as text. Tests of the library run in the root of the tree, so a path says where in the tree the file lies.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>

namespace cosmati {

inline std::string file_text(const std::filesystem::path& path) {
  std::ifstream in(path);
  if (!in) throw std::runtime_error(path.string() + " cannot be read; tests run in the root of the tree");
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace cosmati
