// A LogLabel names the log of a line or a chunk: a rank's log, or that of another process ("setup",
// "scheduler") on one node. Plain values.
#pragma once

#include <fmt/format.h>

#include <compare>
#include <cstdint>
#include <string>

#include "muster/v1/job_service.pb.h"

namespace muster::client {

// Values for ReadLogsRequest.node_logs. The first means all node logs. The second means the
// setup logs of nodes whose start failed, in addition to the other requested logs
// (controller/api/log_sources.h).
inline constexpr const char* kAllAuxiliaries = "*";
inline constexpr const char* kFailedSetups = "setup:failed";

struct LogLabel {
  std::uint32_t attempt = 0, rank = 0;
  std::string auxiliary{};  // not empty: rank is unused
  std::string node{};       // of an auxiliary process
  friend auto operator<=>(const LogLabel&, const LogLabel&) = default;

  // The text in brackets before a line: "rank 3", "node1 setup".
  [[nodiscard]] std::string text() const {
    return auxiliary.empty() ? fmt::format("rank {}", rank) : fmt::format("{} {}", node, auxiliary);
  }
};

inline LogLabel label_of(const v1::ReadLogsResponse& chunk) {
  if (chunk.has_rank()) return {.attempt = chunk.attempt(), .rank = chunk.rank()};
  return {
      .attempt = chunk.attempt(), .rank = 0, .auxiliary = chunk.node_log(), .node = chunk.node()};
}

}  // namespace muster::client
