// HCCL's requirements for the devices that one node gives to a job: the rule of ranktable/cards.h,
// for the jobs that the rule binds. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "common/engine/model/rows.h"
#include "common/engine/ranktable/chip.h"

namespace muster::engine {

// Whether all of the job's devices communicate by HCCL if they are Ascend devices. False for
// launch.per: once, where one program does as it likes.
bool is_hccl_group(const v1::JobSpec& spec);

// The chip whose rule binds the job on devices of `chip`. Nothing: no rule binds the job.
// HCCL_INTRA_ROCE_ENABLE=1 joins the halves of a 910b in another manner.
std::optional<ranktable::Chip> binding_chip(const v1::JobSpec& spec,
                                            std::optional<ranktable::Chip> chip);

// ranktable::cards_problem with advice for this job: a table that muster makes may only have the
// same positions of a 910b's two halves.
std::string cards_problem(ranktable::Chip chip, std::span<const std::uint32_t> cards,
                          bool makes_table);

// Checks resources.devices of a spec that names the chip.
void check_cards(const v1::JobSpec& spec, Problems& problems);

}  // namespace muster::engine
