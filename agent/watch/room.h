// Room on the node's disk for logs. Soft: of each log what the controller has synced goes, down to
// a cap. Hard: when the file system's free bytes fall below a mark, first all that is synced goes,
// then the oldest unshipped bytes of the largest logs, which are then lost and recorded as a gap.
// The watch's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "agent/watch/log_file.h"
#include "common/base/error.h"

namespace muster::agent {

// Keeps the newest bytes of each log whatever happens: people look there first.
inline constexpr std::uint64_t kKeepNewest = 64 << 10;

// `missing`: bytes below the mark, 0 = none. Answers the bytes that were given up without being
// synced.
Result<std::uint64_t> make_room(const std::vector<std::shared_ptr<LogFile>>& files,
                                std::uint64_t soft_cap, std::uint64_t missing);

}  // namespace muster::agent
