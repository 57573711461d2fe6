// A gather whose index is promised to be inside the table: the promise makes it provable, and is checked at launch.
// SPDX-License-Identifier: Apache-2.0
#include <cosmati/cosmati.h>
#include <cstdint>
#include <cstdio>
#include <vector>

using namespace cosmati;

const Program embedding = program("embedding", [] {
  Axis token{"token"}, word{"word"}, d{"d"};
  auto table = input("table", any_float, {word, d});
  auto id = input<i32>("id", {token}).in(0, word.extent());
  auto y = output("y", like(table), {token, d});
  parallel(token, [&] { y(token, d) = table(id, d); });
});

int main() {
  const int words = 11, width = 4, tokens = 6;
  std::vector<float> table(words * width), y(tokens * width);
  std::vector<std::int32_t> id{3, 0, 10, 7, 7, 1};
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = static_cast<float>(i);

  Function f{embedding, Device::pick()};
  auto run = [&] {
    f({{"table", TensorView{table.data(), f32, {words, width}}},
       {"id", TensorView{id.data(), i32, {tokens}}},
       {"y", TensorView{y.data(), f32, {tokens, width}}}});
  };
  run();
  int wrong = 0;
  for (int t = 0; t < tokens; ++t)
    for (int d = 0; d < width; ++d) wrong += y[t * width + d] != table[id[t] * width + d];

  id[2] = words;  // outside the promise
  try {
    run();
    ++wrong;
  } catch (const Error& e) {
    std::printf("%s\n", e.what());
  }
  std::printf("embedding of %d tokens: %d wrong\n", tokens, wrong);
  return wrong;
}
