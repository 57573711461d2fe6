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

  Function f{softmax, Device::pick()};          // COSMATI_DEVICE, else the CPU
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

int decode(const Device& gpu, const Stream& s) {
  const std::int64_t context = 50;
  std::vector<std::uint16_t> q(8 * 32 * 128, 0x3f80), next = q, o(q.size());  // bf16 ones
  std::vector<std::uint16_t> k(8 * 8 * context * 128, 0x3f80), v(k.size(), 0x4000);
  std::vector<float> lse(8 * 32);
  const char* dir = "";  // of compiled kernels: none
  const int threads = 2;
  void* ptr = q.data();
  const TensorView other{next.data(), bf16, {8, 32, 1, 128}}, keys{k.data(), bf16, {8, 8, context, 128}},
      values{v.data(), bf16, {8, 8, context, 128}}, out{o.data(), bf16, {8, 32, 1, 128}}, logs = view(lse, {8, 32, 1});
  const Arguments shapes = {{"q", other}, {"k", keys}, {"v", values}, {"o", out}, {"lse", logs}, {"scale", 0.088f}};

  // With Jit::forbid a miss is an Error, never a stall.
  Function g{load("attention.tile"), gpu, Options{.cache = dir, .jit = Jit::allow}};
  g.warm({shapes}, threads, [](const WarmProgress& p) { std::printf("%zu of %zu: %s\n", p.done, p.total, p.kernel.c_str()); });
  Launch l = g.prepare(
      {{"q", TensorView{ptr, bf16, {8, 32, 1, 128}}}, {"k", keys}, {"v", values}, {"o", out}, {"lse", logs}, {"scale", 0.088f}});
  std::vector<char> memory(l.scratch_bytes());
  void* mine = memory.data();
  l.scratch(mine, l.scratch_bytes());
  l(s);
  l.rebind("q", other);
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
