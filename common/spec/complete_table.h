// Checks resources.rank_table, the user's own table, and derives the rest of resources from it.
// Pure.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "muster/v1/spec.pb.h"

namespace muster::spec {

inline constexpr std::size_t kRankTableBytesMax = 512U << 10U;

// Fills in resources.nodes and resources.devices where the spec does not set them. Does nothing if
// the spec has no table. `launch` must be complete.
void complete_rank_table(v1::JobSpec& spec,
                         const std::function<void(std::string key, std::string message)>& problem);

}  // namespace muster::spec
