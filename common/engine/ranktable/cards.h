// The rule by chip which cards of one server HCCL accepts together. Pure. Card numbers are
// physical.
//
// No other file has a copy of the rule. check_table.h judges tables by it, and placements are
// chosen by it, so that no placement is chosen that HCCL refuses at the start.
//
//   910      two groups of four, 0-3 and 4-7: 1, 2 or 4 cards out of one of them, or all eight
//   910b     a server of sixteen has two halves, 0-7 and 8-15: out of one of them, or the same
//            positions of both
//   910_93   any of sixteen; two (0 and 1, 2 and 3 ...) are the dies of one card
//
// Sources: hicann/hccl docs/zh/user_guide/cluster_info_config/rank_table_config_{910,a2,a3}.md;
// CANN's topoinfo_ranktable*.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/engine/ranktable/chip.h"

namespace muster::ranktable {

// Number of cards: a server has cards 0 to cards_of() - 1 at most.
std::uint32_t cards_of(Chip chip);

// Why a server cannot take part with this number of cards, for every choice of cards. Empty: it
// can. Example: "3 devices; on 910 a server takes part with 1, 2, 4 or 8".
std::string count_problem(Chip chip, std::size_t count);

// Why a server cannot take part with these cards. Empty: it can. Numbers beyond cards_of() and
// duplicate numbers are not checked.
std::string cards_problem(Chip chip, std::span<const std::uint32_t> cards);

// Chooses `count` of the free cards so that cards_problem() accepts them, in ascending order. The
// choice breaks as few whole units as possible. Empty: there is no such choice. A number that is
// free twice (parts of one card) may be chosen at most twice.
std::vector<std::uint32_t> choose_cards(Chip chip, std::span<const std::uint32_t> free,
                                        std::size_t count);

// The required arrangement of this number of cards, for a sentence that asks for them: " of one
// group (0-3 or 4-7)". Empty: no requirement.
std::string together(Chip chip, std::size_t count);
// The number of cards, split by the units of the required arrangement: "2+3" for the two groups, or
// just "5".
std::string tally(Chip chip, std::span<const std::uint32_t> cards);

}  // namespace muster::ranktable
