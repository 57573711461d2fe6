// Strong indices into arenas: Id<Tag> is a u32 that does not mix with other tags.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <compare>
#include <cstdint>
#include <functional>

namespace cosmati::support {

template <class Tag>
struct Id {
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  std::uint32_t index = none;
  constexpr bool valid() const { return index != none; }
  constexpr explicit operator bool() const { return valid(); }
  auto operator<=>(const Id&) const = default;
};

}  // namespace cosmati::support

template <class Tag>
struct std::hash<cosmati::support::Id<Tag>> {
  std::size_t operator()(cosmati::support::Id<Tag> id) const noexcept { return std::hash<std::uint32_t>{}(id.index); }
};
