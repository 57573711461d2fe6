// How an engine embeds Cosmati: a call with views of its arrays, then kernels that are made ahead, launches that are prepared
// once, working memory of its own and its own queue. Where there is no GPU the same lines run on the CPU.
// SPDX-License-Identifier: Apache-2.0
#include <cosmati/cosmati.h>
#include <cmath>
#include <cstdio>
#include <vector>

using namespace cosmati;

namespace {

int worst_row_sum() {
  const Program softmax = load("softmax");
  std::vector<float> a(37 * 1537, 0.25f), b(a.size());

  Function f{softmax, Device::pick()};          // COSMATI_DEVICE, else a GPU, else the CPU
  f(view(a, {37, 1537}), view(b, {37, 1537}));  // compiles once, and waits

  int wrong = 0;
  for (int row = 0; row < 37; ++row) {
    double sum = 0;
    for (int col = 0; col < 1537; ++col) sum += b[row * 1537 + col];
    wrong += std::fabs(sum - 1) > 1e-4;
  }
  return wrong;
}

Device gpu_or(const Device& other) {
  try {
    return Device::cuda(0);
  } catch (const Error& e) {
    std::printf("%s\n", e.what());
    return other;
  }
}

int decode(const Device& device, const Stream& s) {
  const std::int64_t heads = 32, context = 50, width = 128;
  std::vector<std::uint16_t> q(8 * heads * width, 0x3f80), other = q, o(q.size());  // bf16 ones
  std::vector<std::uint16_t> k(8 * 8 * context * width, 0x3f80), v(k.size(), 0x4000);
  std::vector<float> lse(8 * heads);

  Function g{load("attention.tile"), device, Options{.cache = "", .jit = Jit::allow}};
  const Arguments arguments = {{"q", TensorView{q.data(), bf16, {8, heads, 1, width}}},
                               {"k", TensorView{k.data(), bf16, {8, 8, context, width}}},
                               {"v", TensorView{v.data(), bf16, {8, 8, context, width}}},
                               {"o", TensorView{o.data(), bf16, {8, heads, 1, width}}},
                               {"lse", view(lse, {8, heads, 1})},
                               {"scale", 0.088f}};
  g.warm({arguments}, 2, [](const WarmProgress& p) { std::printf("%zu of %zu: %s\n", p.done, p.total, p.kernel.c_str()); });
  Launch l = g.prepare(arguments);

  std::vector<char> mine(l.scratch_bytes());
  l.scratch(mine.data(), mine.size());
  l(s);
  l.rebind("q", TensorView{other.data(), bf16, {8, heads, 1, width}});
  l(s);
  s.wait();
  std::printf("%s%zu compiled\n", l.kernel().explain().c_str(), g.compiles());

  int wrong = g.compiles() > 1;
  for (const std::uint16_t element : o) wrong += element != 0x4000;  // every value is 2
  return wrong;
}

}  // namespace

int main() {
  const Device picked = Device::pick();
  const Device gpu = gpu_or(picked);
  int wrong = worst_row_sum();
  if (gpu.name() == "cuda") {
    void* cu_stream = nullptr;  // the engine's CUstream; null is the default one
    wrong += decode(gpu, gpu.adopt(cu_stream));
  } else if (gpu.name() == "cpu") {
    wrong += decode(gpu, gpu.adopt([](int tasks, const std::function<void(int)>& task) {  // the engine's threads
      for (int i = 0; i < tasks; ++i) task(i);
    }));
  } else {
    wrong += decode(gpu, gpu.stream());
  }
  std::printf("%d wrong\n", wrong);
  return wrong != 0;
}
