#include "agent/logs/full_disk.h"

#include <fmt/format.h>

#include "agent/logs/room.h"

namespace muster::agent {
namespace {

// With less free space on its disk, a rank's last lines may be missing.
constexpr std::uint64_t kLineBytes = 64 << 10;

}  // namespace

bool FullDisk::explain(RankEnding& ending) {
  if (!ending.failed || ending.quality > 0 || !ending.answer.evidence.empty() ||
      free_bytes(tools_.options, logs_dir_).value_or(kLineBytes) >= kLineBytes)
    return true;
  ending.answer.evidence = fmt::format(
      "No space left on device: the disk of '{}' is full, so that the rank's log may end before it "
      "could say why",
      logs_dir_.string());
  ending.answer.evidence_kind = v1::EVIDENCE_KIND_CAUSE;
  return true;
}

}  // namespace muster::agent
