// One program that the library ships, run on an array of this process.
// SPDX-License-Identifier: Apache-2.0
#include <cosmati/cosmati.h>

#include <cmath>
#include <cstdio>
#include <vector>

using namespace cosmati;

int main() {
  try {
    std::vector<float> x(37 * 1537, 0.5f), y(x.size());
    Function softmax{load("softmax"), Device::pick()};
    softmax({{"x", TensorView{x.data(), f32, {37, 1537}}}, {"y", TensorView{y.data(), f32, {37, 1537}}}});
    std::printf("cosmati %s: y[0, 0] = %g\n", version().c_str(), y[0]);
    return std::fabs(y[0] * 1537 - 1) < 1e-5 ? 0 : 1;
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
