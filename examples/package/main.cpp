// softmax from a package: its header checks types and ranks when this is compiled, the library everything else.
// SPDX-License-Identifier: Apache-2.0
#include <softmax.h>

#include <cmath>
#include <cstdio>
#include <vector>

using namespace cosmati;

int main(int argc, char** argv) {
  try {
    std::vector<float> x(37 * 1537, 0.5f), y(x.size());
    const Package package = Package::open(argc > 1 ? argv[1] : "softmax.package");
    packaged::softmax(package, {x.data(), {37, 1537}}, {y.data(), {37, 1537}});
    const Launch launch = packaged::prepare_softmax(package, {x.data(), {1537, 37}}, {y.data(), {1537, 37}});
    std::printf("1 / y[0, 0] = %.3f, then ", 1 / y[0]);
    launch();  // allocates and checks nothing
    std::printf("%.3f\n", 1 / y[0]);
    return std::fabs(y[0] * 37 - 1) < 1e-5 ? 0 : 1;
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
