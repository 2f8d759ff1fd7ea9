#include "controller/core/recovery/unknown_success.h"

#include <fmt/format.h>

#include "controller/core/model/rank_file.h"

namespace muster::core {
namespace {

// What an agent looks for when this rank has ended well. Empty: nothing.
std::string wanted_text(const JobRecord& job, RankNo rank) {
  const v1::SuccessSpec& success = job.spec.success();
  switch (success.means_case()) {
    case v1::SuccessSpec::kRegex:
      return fmt::format("a line of its log matches success.regex '{}'", success.regex());
    case v1::SuccessSpec::kFile: return fmt::format("success.file '{}' is there", success.file());
    case v1::SuccessSpec::kRankFile:
      return fmt::format("its success.rank_file '{}' is there", rank_file_of(job, rank));
    case v1::SuccessSpec::kLastStep: return "the training reached its last step";
    case v1::SuccessSpec::kExit0:
    case v1::SuccessSpec::MEANS_NOT_SET: break;
  }
  return {};
}

}  // namespace

const RankExited* unknown_success(const JobRecord& job, const AttemptRecord& attempt) {
  if (wanted_text(job, {}).empty()) return nullptr;
  const bool each_rank = job.spec.success().means_case() == v1::SuccessSpec::kRankFile;
  const RankExited* first = nullptr;
  for (const NodePart& part : attempt.parts) {
    for (const auto& [rank, exit] : part.exits) {
      const bool decides =
          each_rank ? !exit.success_seen && !exit.success_unknown : exit.success_seen;
      if (decides) return nullptr;
      if (exit.success_unknown && first == nullptr) first = &exit;
    }
  }
  return first;
}

std::string unknown_success_text(const JobRecord& job, const RankExited& exit) {
  return fmt::format(
      "rank {} on node '{}' ended with status 0, but its agent could not find out within 10 s "
      "whether {}: does its file system answer?",
      exit.rank.value, exit.node.str(), wanted_text(job, exit.rank));
}

}  // namespace muster::core
