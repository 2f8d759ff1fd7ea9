#include "controller/core/placement/rank_files.h"

#include <fmt/format.h>

#include "controller/core/model/rank_file.h"

namespace muster::core {

std::string rank_file_missing(const JobRecord& job, const AttemptRecord& attempt) {
  constexpr std::string_view kSaveDir = "${save.dir}/";
  for (const NodePart& part : attempt.parts) {
    for (const auto& [rank, exit] : part.exits) {
      if (exit.success_seen || exit.success_unknown) continue;
      const std::string file = rank_file_of(job, rank);
      const bool saved = file.starts_with(kSaveDir);  // that directory is not known here
      return fmt::format(
          "every rank ended with status 0, but rank {} on node '{}' has not written '{}'{}",
          rank.value, part.placed.node.str(), saved ? file.substr(kSaveDir.size()) : file,
          saved ? fmt::format(
                      " below its save directory (MUSTER_SAVE_DIR of `muster env {} --rank {}`)",
                      job.spec.name(), rank.value)
                : "");
    }
  }
  return {};
}

}  // namespace muster::core
