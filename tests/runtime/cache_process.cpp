// One process that uses the disk cache of its environment: waits for a line on standard input, runs eight programs of one name on
// arrays, compares the results with loops, and prints `NUMBER compiled, NUMBER wrong` and every warning.
//   cache_process [--no-write-to-files]     the option lets writing to any file fail as on a full disk
// SPDX-License-Identifier: Apache-2.0
#include <sys/resource.h>

#include <csignal>
#include <cstdio>
#include <cstring>

#include <cosmati/cosmati.h>

using namespace cosmati;

namespace {

constexpr std::int64_t rows = 5, columns = 37;

int run(int factor, std::size_t& compiles) {
  const Program p = parse("program same(in x: f32[i, j], out y: f32[i, j]) {\n parallel i {\n  t = sum(x * " +
                          std::to_string(factor) + ", j)\n  y[i, j] = x + t\n }\n}")
                        .front();
  std::vector<float> x(rows * columns), y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 11);
  const Function f(p, Device::cpu());
  f(view(x, {rows, columns}), view(y, {rows, columns}));
  compiles += f.compiles();
  int wrong = 0;
  for (std::int64_t i = 0; i < rows; ++i) {
    float t = 0;
    for (std::int64_t j = 0; j < columns; ++j) t += x[i * columns + j] * static_cast<float>(factor);
    for (std::int64_t j = 0; j < columns; ++j) wrong += y[i * columns + j] != x[i * columns + j] + t;
  }
  return wrong;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "--no-write-to-files") == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit none = {0, 0};
    setrlimit(RLIMIT_FSIZE, &none);
  }
  set_log([](LogLevel level, const std::string& message) {
    if (level == LogLevel::warning) std::printf("warning: %s\n", message.c_str());
  });
  std::getchar();
  std::size_t compiles = 0;
  int wrong = 0;
  for (int factor = 2; factor < 10; ++factor) wrong += run(factor, compiles);
  std::printf("%zu compiled, %d wrong\n", compiles, wrong);
  return wrong != 0;
}
