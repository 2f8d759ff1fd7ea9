// Which cards of one server HCCL takes part with, by chip: the one place where that rule stands.
// check_table.h judges tables by it, and placements are chosen by it, so that none is chosen which
// HCCL refuses at the start. Numbers are physical. Pure.
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

// A server has cards 0 to cards_of() - 1 at most.
std::uint32_t cards_of(Chip chip);

// Why a server takes no part with so many cards, whichever they are; empty: it may. "3 devices; on
// 910 a server takes part with 1, 2, 4 or 8".
std::string count_problem(Chip chip, std::size_t count);

// Why it takes no part with these; empty: it does. Numbers beyond cards_of() and one number twice
// are not looked for.
std::string cards_problem(Chip chip, std::span<const std::uint32_t> cards);

// `count` out of the free ones that cards_problem() has nothing against, ascending: those whose
// taking breaks least that was whole. Empty: there are none. A number that is free twice (parts of
// one card) may be chosen twice, and no more.
std::vector<std::uint32_t> choose_cards(Chip chip, std::span<const std::uint32_t> free,
                                        std::size_t count);

// How so many cards have to lie, for a sentence that asks for them: " of one group (0-3 or 4-7)";
// empty: anyhow.
std::string together(Chip chip, std::size_t count);
// How many there are, by what they have to lie in: "2+3" of the two groups, or just "5".
std::string tally(Chip chip, std::span<const std::uint32_t> cards);

}  // namespace muster::ranktable
