// What the simulator remembers about memory: who wrote and who read each element. Groups run one after another, each under a
// stamp that only grows, so one writer and the first reader of a phase are enough to see every conflict between groups. Lanes
// that go apart meet at fences, which are counted: an element that one wrote and another touches between two of them is a
// conflict. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "support/check.h"

namespace cosmati::kernel {

template <class Cell>
struct Watched {
  Watched(std::int64_t lo, std::int64_t hi) : lo(lo), hi(hi), cells_(allocate(hi - lo)) {}
  Cell& operator[](std::int64_t offset) { return cells_[offset - lo]; }

  const std::int64_t lo, hi;

 private:
  // Pages that no access touches stay unallocated: a view may span far more than it uses.
  static Cell* allocate(std::int64_t n) {
    if (n <= 0) return nullptr;
    void* p = std::calloc(static_cast<std::size_t>(n), sizeof(Cell));
    COSMATI_CHECK(p, "no memory to watch {} elements", n);
    return static_cast<Cell*>(p);
  }
  struct Free {
    void operator()(Cell* p) const { std::free(p); }
  };
  std::unique_ptr<Cell[], Free> cells_;
};

struct ByGroups {
  std::uint32_t writer, reader;  // stamps; 0: nobody
};
using Shadow = Watched<ByGroups>;

struct ByLanes {
  std::uint32_t written_at, read_at;  // after how many fences; 0: never
  std::uint16_t writer, reader;       // lanes, or several
};
inline constexpr std::uint16_t several_lanes = 0xffff;

// Whether an access of group `stamp` conflicts with one of another group of the phase that began at stamp `phase`.
enum class Conflict : std::uint8_t { none, unwritten, written_by_other, read_by_other };

// Memory that groups share. `defined`: what nobody wrote is defined all the same (arguments).
inline Conflict note_read(ByGroups& cell, std::uint32_t stamp, std::uint32_t phase, bool defined) {
  if (cell.writer == 0 && !defined) return Conflict::unwritten;
  if (cell.writer >= phase && cell.writer != stamp) return Conflict::written_by_other;
  if (cell.reader < phase) cell.reader = stamp;
  return Conflict::none;
}
inline Conflict note_write(ByGroups& cell, std::uint32_t stamp, std::uint32_t phase) {
  if (cell.writer >= phase && cell.writer != stamp) return Conflict::written_by_other;
  if (cell.reader >= phase && cell.reader != stamp) return Conflict::read_by_other;
  cell.writer = stamp;
  return Conflict::none;
}

// The same of lane `lane` (or several) of a group after `fences` fences.
inline Conflict note_read(ByLanes& cell, std::uint16_t lane, std::uint32_t fences) {
  if (cell.written_at == fences && (cell.writer != lane || lane == several_lanes)) return Conflict::written_by_other;
  cell.reader = cell.read_at == fences && cell.reader != lane ? several_lanes : lane;
  cell.read_at = fences;
  return Conflict::none;
}
inline Conflict note_write(ByLanes& cell, std::uint16_t lane, std::uint32_t fences) {
  if (cell.written_at == fences && cell.writer != lane) return Conflict::written_by_other;
  if (cell.read_at == fences && cell.reader != lane) return Conflict::read_by_other;
  cell.writer = lane;
  cell.written_at = fences;
  return Conflict::none;
}

}  // namespace cosmati::kernel
