#include "common/engine/ranktable/cards.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <iterator>
#include <utility>

namespace muster::ranktable {
namespace {

constexpr std::uint32_t kGroup = 4;  // of a 910
constexpr std::uint32_t kHalf = 8;   // of a 910b

using Cards = std::vector<std::uint32_t>;
using Parts = std::array<Cards, 2>;

std::string devices_text(std::size_t count) {
  return fmt::format("{} device{}", count, count == 1 ? "" : "s");
}

// Splits the cards into those below `size` and those from `size` to twice `size`.
Parts split(std::span<const std::uint32_t> cards, std::uint32_t size) {
  Parts parts;
  for (const std::uint32_t card : cards) {
    if (card < 2 * size) parts[card < size ? 0 : 1].push_back(card);
  }
  for (Cards& part : parts) std::ranges::sort(part);
  return parts;
}

Cards first_of(const Cards& cards, std::size_t count) {
  return {cards.begin(), cards.begin() + static_cast<std::ptrdiff_t>(count)};
}

// Takes the cards from the part that has fewest cards left and still enough.
Cards out_of_one(const Parts& parts, std::size_t count) {
  const auto& [low, high] = parts;
  const bool first = low.size() >= count && (high.size() < count || low.size() <= high.size());
  if (first) return first_of(low, count);
  return high.size() >= count ? first_of(high, count) : Cards();
}

Cards positions_of_both(const Parts& parts, std::size_t count) {
  Cards chosen;
  if (count % 2 != 0) return chosen;
  Cards others = parts[1];
  for (const std::uint32_t card : parts[0]) {
    const auto other = std::ranges::lower_bound(others, card + kHalf);
    if (chosen.size() == count || other == others.end() || *other != card + kHalf) continue;
    chosen.push_back(card);
    chosen.push_back(card + kHalf);
    others.erase(other);
  }
  std::ranges::sort(chosen);
  return chosen.size() == count ? chosen : Cards();
}

// Prefers whole cards; the rest comes from cards that are already split.
Cards whole_dies(std::span<const std::uint32_t> free, std::size_t count) {
  Cards sorted(free.begin(), free.end());
  std::ranges::sort(sorted);
  Cards chosen, single, pairs;
  for (const std::uint32_t die : sorted)
    (std::ranges::binary_search(sorted, die ^ 1U) ? pairs : single).push_back(die);
  const std::size_t even = std::min(count - count % 2, pairs.size());
  chosen = first_of(pairs, even);
  pairs.erase(pairs.begin(), pairs.begin() + static_cast<std::ptrdiff_t>(even));
  for (const Cards* rest : {&std::as_const(single), &std::as_const(pairs)}) {
    const Cards more = first_of(*rest, std::min(rest->size(), count - chosen.size()));
    chosen.insert(chosen.end(), more.begin(), more.end());
  }
  std::ranges::sort(chosen);
  return chosen;
}

}  // namespace

std::uint32_t cards_of(Chip chip) { return chip == Chip::A910 ? 2 * kGroup : 2 * kHalf; }

std::string count_problem(Chip chip, std::size_t count) {
  if (chip == Chip::A910)
    return count > 2 * kGroup || !std::has_single_bit(count)
               ? fmt::format("{}; on 910 a server takes part with 1, 2, 4 or 8",
                             devices_text(count))
               : "";
  if (count > cards_of(chip))
    return fmt::format("{}; a {} server has {} at most", devices_text(count), to_string(chip),
                       cards_of(chip));
  if (chip == Chip::A910B && count > kHalf && count % 2 != 0)
    return fmt::format(
        "{}; on 910b more than 8 are the same positions of both halves (0-7 and 8-15), an even "
        "number",
        devices_text(count));
  return {};
}

std::string cards_problem(Chip chip, std::span<const std::uint32_t> cards) {
  switch (chip) {
    case Chip::A910: {
      if (std::string wrong = count_problem(chip, cards.size()); !wrong.empty()) return wrong;
      const auto low = static_cast<std::size_t>(
          std::ranges::count_if(cards, [](std::uint32_t card) { return card < kGroup; }));
      if (cards.size() == 2 * kGroup || low == 0 || low == cards.size()) return {};
      return fmt::format(
          "{} devices out of both groups of a 910 server; take them out of 0-3 or out of 4-7",
          cards.size());
    }
    case Chip::A910B: {
      // HCCL joins the two boards card by card.
      std::uint32_t low = 0, high = 0;
      for (const std::uint32_t card : cards) {
        if (card < kHalf) low |= 1U << card;
        if (card >= kHalf && card < 2 * kHalf) high |= 1U << (card - kHalf);
      }
      if (low == 0 || high == 0 || low == high) return {};
      return "uses different positions of the two halves of a 910b server (0-7 and 8-15); use the "
             "same ones of each (HCCL takes others only with HCCL_INTRA_ROCE_ENABLE=1)";
    }
    case Chip::A910_93: return {};
  }
  return {};
}

std::vector<std::uint32_t> choose_cards(Chip chip, std::span<const std::uint32_t> free,
                                        std::size_t count) {
  if (count == 0 || !count_problem(chip, count).empty()) return {};
  Cards known;
  std::ranges::copy_if(free, std::back_inserter(known),
                       [chip](std::uint32_t card) { return card < cards_of(chip); });
  if (known.size() < count) return {};
  switch (chip) {
    case Chip::A910: {
      if (count < 2 * kGroup) return out_of_one(split(known, kGroup), count);
      std::ranges::sort(known);
      return first_of(known, count);
    }
    case Chip::A910B: {
      const Parts halves = split(known, kHalf);
      Cards chosen = out_of_one(halves, count);
      return chosen.empty() ? positions_of_both(halves, count) : chosen;
    }
    case Chip::A910_93: return whole_dies(known, count);
  }
  return {};
}

std::string together(Chip chip, std::size_t count) {
  if (chip == Chip::A910 && (count == 2 || count == kGroup)) return " of one group (0-3 or 4-7)";
  if (chip == Chip::A910B && count > kHalf)
    return " at the same positions of both halves (0-7 and 8-15)";
  return {};
}

std::string tally(Chip chip, std::span<const std::uint32_t> cards) {
  const std::uint32_t size = chip == Chip::A910 ? kGroup : chip == Chip::A910B ? kHalf : 0;
  const Parts parts = split(cards, size);
  const bool halves = chip == Chip::A910 || (chip == Chip::A910B && !parts[1].empty());
  return halves ? fmt::format("{}+{}", parts[0].size(), parts[1].size())
                : std::to_string(cards.size());
}

}  // namespace muster::ranktable
