// Settings to try: which, in which order, and that they end.
// SPDX-License-Identifier: Apache-2.0
#include "tools/settings.h"

#include <gmock/gmock.h>

#include <set>

namespace cosmati::tools {
namespace {

std::vector<Function::KnobChoices> space() {
  return {{"lanes", {"1", "8", "16"}, "16"}, {"lane_axes", {"none", "col"}, {}}, {"tile.col", {"1", "2", "4"}, {}}};
}

std::vector<Knobs> drawn(Settings settings, std::size_t most = 1000) {
  std::vector<Knobs> all;
  while (all.size() < most) {
    std::optional<Knobs> knobs = settings.next();
    if (!knobs) break;
    all.push_back(*knobs);
  }
  return all;
}

TEST(Settings, TheSeedDecidesThem) {
  const auto a = drawn(Settings(space(), {}, 7), 12), b = drawn(Settings(space(), {}, 7), 12),
             c = drawn(Settings(space(), {}, 8), 12);
  EXPECT_EQ(a, b);
  EXPECT_NE(a, c);
  // The same on every machine and with every standard library.
  EXPECT_EQ(text_of(a[0]), "lanes=16 tile.col=4");
  EXPECT_EQ(text_of(a[1]), "lane_axes=col lanes=1");
}

TEST(Settings, AllAreTriedOnceAndThenTheyEnd) {
  const auto all = drawn(Settings(space(), {}, 3));
  EXPECT_EQ(std::set<Knobs>(all.begin(), all.end()).size(), all.size());
  EXPECT_EQ(all.size(), 3u * 3u * 4u - 1u);  // lanes is always set; the automatic setting itself is known already
  for (const auto& choice : space())
    for (const std::string& value : choice.values) {
      const bool found = std::any_of(all.begin(), all.end(), [&](const Knobs& knobs) {
        const auto it = knobs.find(choice.knob);
        return it != knobs.end() && it->second == value;
      });
      EXPECT_TRUE(found) << choice.knob << " " << value;
    }
}

TEST(Settings, FixedKnobsStay) {
  Settings settings(space(), {{"lanes", "8"}}, 1);
  EXPECT_EQ(text_of(settings.automatic()), "lanes=8");
  for (const Knobs& knobs : drawn(settings)) EXPECT_EQ(knobs.at("lanes"), "8");
}

TEST(Settings, WhatIsAutomaticIsSaidWhereItIsKnown) {
  EXPECT_EQ(text_of(Settings(space(), {}, 1).automatic()), "lanes=16");
  EXPECT_FALSE(Settings({}, {}, 1).next());
}

}  // namespace
}  // namespace cosmati::tools
