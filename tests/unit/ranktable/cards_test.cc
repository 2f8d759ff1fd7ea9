// The rule of cards, and the choice by it: every choice is accepted by the rule, and there is a
// choice whenever one is possible.
#include "common/engine/ranktable/cards.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <random>

namespace muster::ranktable {
namespace {

using Cards = std::vector<std::uint32_t>;

Cards of_mask(std::uint32_t mask) {
  Cards cards;
  for (std::uint32_t card = 0; card < 32; ++card) {
    if ((mask >> card & 1U) != 0) cards.push_back(card);
  }
  return cards;
}
std::string chosen(Chip chip, const Cards& free, std::size_t count) {
  return fmt::format("{}", fmt::join(choose_cards(chip, free, count), ","));
}

struct Choice {
  const char* what;
  Chip chip;
  Cards free;
  std::size_t count;
  const char* chosen;
};

TEST(Cards, AreChosenSoThatLeastIsBroken) {
  const Cards all = of_mask(0xFF), sixteen = of_mask(0xFFFF);
  for (const Choice& one : {
           Choice{"one of a whole server", Chip::A910, all, 1, "0"},
           Choice{
               "one, out of the group that is broken", Chip::A910, {0, 1, 2, 3, 5, 6, 7}, 1, "5"},
           Choice{"two, out of the group that is broken", Chip::A910, {0, 1, 2, 3, 6, 7}, 2, "6,7"},
           Choice{"two, where the broken group has one", Chip::A910, {1, 4, 5, 6, 7}, 2, "4,5"},
           Choice{"two, one left in each", Chip::A910, {3, 4}, 2, ""},
           Choice{"four, two and two left", Chip::A910, {0, 1, 4, 5}, 4, ""},
           Choice{"four, of the second group", Chip::A910, {1, 2, 3, 4, 5, 6, 7}, 4, "4,5,6,7"},
           Choice{"three are none", Chip::A910, all, 3, ""},
           Choice{"all eight", Chip::A910, all, 8, "0,1,2,3,4,5,6,7"},
           Choice{"a number that a 910 has not", Chip::A910, {8, 9, 10, 11}, 2, ""},
           Choice{"six of an A2", Chip::A910B, all, 6, "0,1,2,3,4,5"},
           Choice{"three of the half that is broken",
                  Chip::A910B,
                  {0, 1, 2, 3, 4, 5, 6, 7, 12, 13, 14},
                  3,
                  "12,13,14"},
           Choice{"eight, in no half",
                  Chip::A910B,
                  {0, 1, 2, 3, 4, 8, 9, 10, 11, 12},
                  8,
                  "0,1,2,3,8,9,10,11"},
           Choice{"eight, at other positions", Chip::A910B, {0, 1, 2, 3, 12, 13, 14, 15}, 8, ""},
           Choice{"ten", Chip::A910B, sixteen, 10, "0,1,2,3,4,8,9,10,11,12"},
           Choice{"nine are none", Chip::A910B, sixteen, 9, ""},
           Choice{"two dies of one card", Chip::A910_93, {1, 2, 3}, 2, "2,3"},
           Choice{"the die that is left over", Chip::A910_93, {0, 1, 3, 4, 5}, 1, "3"},
           Choice{"three: a card and the die that is left over",
                  Chip::A910_93,
                  {0, 1, 3, 4, 5},
                  3,
                  "0,1,3"},
           Choice{"two where there is no whole card", Chip::A910_93, {1, 2, 4}, 2, "1,2"},
           Choice{"none at all", Chip::A910_93, all, 0, ""},
           Choice{"more than there are", Chip::A910_93, all, 9, ""},
       }) {
    EXPECT_EQ(chosen(one.chip, one.free, one.count), one.chosen) << one.what;
  }
}

TEST(Cards, SomethingIsChosenWheneverAnythingCouldBe) {
  // All subsets of the eight cards of a 910.
  for (std::uint32_t free = 0; free < 256; ++free) {
    std::array<bool, 9> possible{};
    for (std::uint32_t subset = free;; subset = (subset - 1) & free) {
      if (subset != 0 && cards_problem(Chip::A910, of_mask(subset)).empty())
        possible.at(static_cast<std::size_t>(std::popcount(subset))) = true;
      if (subset == 0) break;
    }
    for (std::size_t count = 1; count <= 8; ++count) {
      const Cards cards = choose_cards(Chip::A910, of_mask(free), count);
      ASSERT_EQ(!cards.empty(), possible.at(count))
          << count << " of " << fmt::format("{}", of_mask(free));
    }
  }
}

TEST(Cards, WhatIsChosenIsFreeAndTaken) {
  std::mt19937 chance(7);
  for (int round = 0; round < 2'000; ++round) {
    const auto free = static_cast<std::uint32_t>(chance() & 0xFFFFU);
    for (const Chip chip : {Chip::A910, Chip::A910B, Chip::A910_93}) {
      for (std::size_t count = 1; count <= 17; ++count) {
        const Cards cards = choose_cards(chip, of_mask(free), count);
        if (cards.empty()) continue;
        ASSERT_EQ(cards.size(), count);
        ASSERT_EQ(cards_problem(chip, cards), "");
        ASSERT_EQ(count_problem(chip, count), "");
        for (const std::uint32_t card : cards)
          ASSERT_TRUE((free >> card & 1U) != 0 && card < cards_of(chip));
        ASSERT_TRUE(std::ranges::is_sorted(cards));
      }
    }
  }
}

TEST(Cards, InSentences) {
  EXPECT_EQ(count_problem(Chip::A910, 3),
            "3 devices; on 910 a server takes part with 1, 2, 4 or 8");
  EXPECT_EQ(count_problem(Chip::A910, 16),
            "16 devices; on 910 a server takes part with 1, 2, 4 or 8");
  EXPECT_EQ(count_problem(Chip::A910_93, 17), "17 devices; a 910_93 server has 16 at most");
  EXPECT_EQ(count_problem(Chip::A910B, 7), "");
  EXPECT_NE(count_problem(Chip::A910B, 11), "");
  EXPECT_EQ(together(Chip::A910, 4), " of one group (0-3 or 4-7)");
  EXPECT_EQ(together(Chip::A910, 1) + together(Chip::A910, 8) + together(Chip::A910B, 8) +
                together(Chip::A910_93, 16),
            "");
  EXPECT_EQ(tally(Chip::A910, Cards{0, 1, 4}), "2+1");
  EXPECT_EQ(tally(Chip::A910B, Cards{0, 1, 4}), "3");
  EXPECT_EQ(tally(Chip::A910B, Cards{0, 1, 8}), "2+1");
  EXPECT_EQ(tally(Chip::A910_93, Cards{0, 1, 8}), "3");
}

TEST(Chip, ByItsNameElseByItsType) {
  EXPECT_EQ(chip_of("910B3", "ascend"), Chip::A910B);
  EXPECT_EQ(chip_of("Ascend910B", ""), Chip::A910);
  EXPECT_EQ(chip_of("Ascend910_9391", ""), Chip::A910_93);
  EXPECT_EQ(chip_of("", "ascend910b"), Chip::A910B);
  EXPECT_EQ(chip_of("Ascend910", "ascend910_93"), Chip::A910_93) << "an A3 calls itself so, too";
  EXPECT_EQ(chip_of("310P3", "ascend"), std::nullopt);
  EXPECT_EQ(chip_of("", "cpu"), std::nullopt);
}

}  // namespace
}  // namespace muster::ranktable
