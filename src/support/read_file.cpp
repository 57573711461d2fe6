// Texts are read in one go, up to a limit that no program or plan comes near: a device may never end.
// SPDX-License-Identifier: Apache-2.0
#include "support/read_file.h"

#include <fmt/format.h>

#include <cosmati/error.h>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace cosmati::support {

std::string read_file(const std::string& path) {
  constexpr std::size_t longest = std::size_t{1} << 26, step = std::size_t{1} << 16;
  const auto refuse = [&](const std::string& what) { throw Error(ErrorCode::bad_file, Where{path, 0, 0}, what); };
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) refuse("this is a folder, not a file");
  std::ifstream in(path, std::ios::binary);
  if (!in) refuse(fmt::format("the file cannot be read: {}", std::strerror(errno)));
  std::string text;
  for (std::size_t got = 0; in; text.resize(got)) {
    if (got > longest) refuse(fmt::format("the file is longer than {} bytes", longest));
    text.resize(got + step);
    in.read(text.data() + got, static_cast<std::streamsize>(step));
    got += static_cast<std::size_t>(in.gcount());
  }
  if (in.bad()) refuse(fmt::format("the file cannot be read: {}", std::strerror(errno)));
  return text;
}

}  // namespace cosmati::support
