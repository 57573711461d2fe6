// One loop a stream and width of vectors; the widest that the processor has runs. Eight accumulators keep a read from waiting for
// itself; a barrier for the compiler in every turn keeps it from making library calls of the loops, or nothing at all.
// SPDX-License-Identifier: Apache-2.0
#include "tools/stream_kernels.h"

#include <cstring>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace cosmati::tools {
namespace {

constexpr std::int64_t unrolled = 8;

#define BARRIER asm volatile("" : : "r"(to) : "memory")

// `vector` is a type of `width` bytes; `bypassing(to, value)` stores to an aligned address.
#define STREAMS(name, target, vector, bypassing)                                                                         \
  struct Loose_##name {                                                                                                  \
    vector value;                                                                                                        \
  } __attribute__((packed, may_alias));                                                                                  \
  target void read_##name(void* to, const void* from, std::int64_t bytes) {                                              \
    constexpr std::int64_t width = sizeof(vector), turn = width * unrolled;                                              \
    const auto* p = static_cast<const char*>(from);                                                                      \
    const char* const end = p + bytes / turn * turn;                                                                     \
    vector a = {}, b = {}, c = {}, d = {}, e = {}, f = {}, g = {}, h = {};                                               \
    for (; p < end; p += turn) {                                                                                         \
      const auto* v = reinterpret_cast<const Loose_##name*>(p);                                                          \
      a ^= v[0].value, b ^= v[1].value, c ^= v[2].value, d ^= v[3].value;                                                \
      e ^= v[4].value, f ^= v[5].value, g ^= v[6].value, h ^= v[7].value;                                                \
    }                                                                                                                    \
    a = ((a ^ b) ^ (c ^ d)) ^ ((e ^ f) ^ (g ^ h));                                                                       \
    for (std::int64_t rest = bytes % turn; rest > 0; rest -= width, p += width) {                                        \
      vector last = {};                                                                                                  \
      std::memcpy(&last, p, static_cast<std::size_t>(rest < width ? rest : width));                                      \
      a ^= last;                                                                                                         \
    }                                                                                                                    \
    static_cast<Loose_##name*>(to)->value = a;                                                                           \
    BARRIER;                                                                                                             \
  }                                                                                                                      \
  target void write_##name(void* to, const void* from, std::int64_t bytes) {                                             \
    constexpr std::int64_t width = sizeof(vector), turn = width * unrolled;                                              \
    const vector value = static_cast<const Loose_##name*>(from)->value;                                                  \
    auto* p = static_cast<char*>(to);                                                                                    \
    char* const end = p + bytes / turn * turn;                                                                           \
    for (; p < end; p += turn) {                                                                                         \
      auto* v = reinterpret_cast<Loose_##name*>(p);                                                                      \
      v[0].value = value, v[1].value = value, v[2].value = value, v[3].value = value;                                    \
      v[4].value = value, v[5].value = value, v[6].value = value, v[7].value = value;                                    \
      BARRIER;                                                                                                           \
    }                                                                                                                    \
    for (std::int64_t rest = bytes % turn; rest > 0; rest -= width, p += width)                                          \
      std::memcpy(p, from, static_cast<std::size_t>(rest < width ? rest : width));                                       \
  }                                                                                                                      \
  target void copy_##name(void* to, const void* from, std::int64_t bytes) {                                              \
    constexpr std::int64_t width = sizeof(vector), turn = width * unrolled;                                              \
    const std::int64_t whole = bytes / turn * turn;                                                                      \
    for (std::int64_t at = 0; at < whole; at += turn) {                                                                  \
      auto* t = reinterpret_cast<Loose_##name*>(static_cast<char*>(to) + at);                                            \
      const auto* v = reinterpret_cast<const Loose_##name*>(static_cast<const char*>(from) + at);                        \
      t[0] = v[0], t[1] = v[1], t[2] = v[2], t[3] = v[3];                                                                \
      t[4] = v[4], t[5] = v[5], t[6] = v[6], t[7] = v[7];                                                                \
      BARRIER;                                                                                                           \
    }                                                                                                                    \
    std::memcpy(static_cast<char*>(to) + whole, static_cast<const char*>(from) + whole,                                  \
                static_cast<std::size_t>(bytes - whole));                                                                \
  }                                                                                                                      \
  target void bypass_##name(void* to, const void* from, std::int64_t bytes) {                                            \
    constexpr std::int64_t width = sizeof(vector), turn = width * unrolled;                                              \
    std::int64_t at = -reinterpret_cast<std::intptr_t>(to) & (width - 1);                                                \
    at = at < bytes ? at : bytes;                                                                                        \
    std::memcpy(to, from, static_cast<std::size_t>(at));                                                                 \
    for (; at + turn <= bytes; at += turn) {                                                                             \
      auto* t = reinterpret_cast<vector*>(static_cast<char*>(to) + at);                                                  \
      const auto* v = reinterpret_cast<const Loose_##name*>(static_cast<const char*>(from) + at);                        \
      bypassing(t, v[0].value), bypassing(t + 1, v[1].value), bypassing(t + 2, v[2].value);                              \
      bypassing(t + 3, v[3].value), bypassing(t + 4, v[4].value), bypassing(t + 5, v[5].value);                          \
      bypassing(t + 6, v[6].value), bypassing(t + 7, v[7].value);                                                        \
      BARRIER;                                                                                                           \
    }                                                                                                                    \
    fence();                                                                                                             \
    std::memcpy(static_cast<char*>(to) + at, static_cast<const char*>(from) + at, static_cast<std::size_t>(bytes - at)); \
  }                                                                                                                      \
  constexpr Pass* passes_##name[] = {read_##name, write_##name, copy_##name, bypass_##name};

#if defined(__x86_64__)
void fence() { _mm_sfence(); }
#define STORE_16(to, value) _mm_stream_si128(to, value)
#define STORE_32(to, value) _mm256_stream_si256(to, value)
#define STORE_64(to, value) _mm512_stream_si512(to, value)
STREAMS(sse2, , __m128i, STORE_16)
STREAMS(avx2, __attribute__((target("avx2"))), __m256i, STORE_32)
STREAMS(avx512, __attribute__((target("avx512f"))), __m512i, STORE_64)
#else
using Vector = std::int64_t __attribute__((vector_size(16), may_alias));
void fence() {}
#define STORE_16(to, value) *(to) = value
STREAMS(plain, , Vector, STORE_16)
#endif

}  // namespace

Pass* pass_of(Stream stream) {
  const auto at = static_cast<std::size_t>(stream);
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return passes_avx512[at];
  if (__builtin_cpu_supports("avx2")) return passes_avx2[at];
  return passes_sse2[at];
#else
  return passes_plain[at];
#endif
}

}  // namespace cosmati::tools
