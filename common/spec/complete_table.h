// resources.rank_table: whether the table of the user's own is sound, and what follows from it for
// the rest of resources.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "muster/v1/spec.pb.h"

namespace muster::spec {

inline constexpr std::size_t kRankTableBytesMax = 512U << 10U;

// Fills resources.nodes and resources.devices in where they are not said. Nothing where the spec
// has no table. `launch` is complete.
void complete_rank_table(v1::JobSpec& spec,
                         const std::function<void(std::string key, std::string message)>& problem);

}  // namespace muster::spec
