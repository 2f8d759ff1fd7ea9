// Frees disk space of this node that logs use. FileWatch calls make_room() on the watch thread.
//
//   - Soft cap: of each log, bytes that the controller has synced are punched until the cap is
//     kept.
//   - Hard cap: if the file system has fewer free bytes than a mark, all synced bytes are punched
//     first. Then the oldest unshipped bytes of the largest logs are punched; these are lost and
//     recorded as a gap.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "agent/logs/log_file.h"
#include "common/base/error.h"

namespace muster::agent {

// The newest bytes of each log always stay, because people read them first.
inline constexpr std::uint64_t kKeepNewest = 64 << 10;

// `missing` is the number of bytes below the mark, 0 = none. Returns the bytes that were punched
// without being synced.
Result<std::uint64_t> make_room(const std::vector<std::shared_ptr<LogFile>>& files,
                                std::uint64_t soft_cap, std::uint64_t missing);

}  // namespace muster::agent
