// driver DIR: opens a package and prints what its kernel is.
// driver DIR ARG...: runs it by a call and by a launch with lent scratch, on arguments in declared order, whose results must be
// equal. ARG is DTYPE:EXTENT,...:FILE, an array in a file of its bytes, written back; or a number; or `-`, left out.
// The exit code is 2 for an Error, whose text goes to standard error.
// SPDX-License-Identifier: Apache-2.0
#include <cosmati/package.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

using namespace cosmati;

namespace {

struct Array {
  std::string file, bytes;
  TensorView view;
};

Array array_of(const std::string& text) {
  std::istringstream in(text);
  Array array;
  std::string dtype, extents, extent;
  std::getline(in, dtype, ':');
  std::getline(in, extents, ':');
  std::getline(in, array.file);
  std::ifstream file(array.file, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  array.bytes = bytes.str();
  std::vector<std::int64_t> shape;
  for (std::istringstream list(extents); std::getline(list, extent, ',');) shape.push_back(std::stoll(extent));
  array.view = TensorView(nullptr, *dtype_from_name(dtype), shape);
  return array;
}

std::vector<std::optional<Argument>> arguments_of(std::vector<Array>& arrays, int argc, char** argv) {
  std::vector<std::optional<Argument>> arguments;
  std::size_t next = 0;
  for (int i = 2; i < argc; ++i) {
    const std::string text = argv[i];
    if (text.find(':') != text.npos) {
      Array& array = arrays[next++];
      array.view.data = array.bytes.data();
      arguments.emplace_back(array.view);
    } else if (text == "-") {
      arguments.emplace_back(std::nullopt);
    } else {
      arguments.emplace_back(std::stod(text));
    }
  }
  return arguments;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Package package = Package::open(argv[1], Device::cpu(2));
    if (argc == 2) {
      std::printf("%s %s\n%s", package.kernel().name().c_str(), package.identity().c_str(), package.kernel().explain().c_str());
      return 0;
    }
    std::vector<Array> called, launched;
    for (int i = 2; i < argc; ++i)
      if (std::strchr(argv[i], ':')) called.push_back(array_of(argv[i]));
    launched = called;
    package.call(arguments_of(called, argc, argv));
    Launch launch = package.prepare(arguments_of(launched, argc, argv));
    std::vector<char> scratch(launch.scratch_bytes());
    if (!scratch.empty()) launch.scratch(scratch.data(), scratch.size());
    launch();
    std::printf("scratch %zu\n", launch.scratch_bytes());
    for (std::size_t i = 0; i < called.size(); ++i) {
      if (called[i].bytes != launched[i].bytes) return 3;
      std::ofstream(called[i].file, std::ios::binary) << called[i].bytes;
    }
    return 0;
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
