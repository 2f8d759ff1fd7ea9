#include "common/rundir/layout.h"

#include <algorithm>
#include <charconv>

namespace muster::rundir {

std::optional<std::pair<JobId, AttemptNo>> AgentLayout::parse_run_name(const std::string& name) {
  const auto dot = name.rfind('.');
  if (dot == std::string::npos || dot == 0 || dot + 1 == name.size()) return std::nullopt;
  const auto job = name.substr(0, dot);
  const auto fits = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_'; };
  if (!std::ranges::all_of(job, fits)) return std::nullopt;
  std::uint32_t attempt = 0;
  const char* const end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data() + dot + 1, end, attempt);
  if (error != std::errc() || rest != end || attempt == 0 || name[dot + 1] == '0') return std::nullopt;
  return std::pair(JobId(job), AttemptNo(attempt));
}

std::string cookie(const ClusterId& cluster, const JobId& job, AttemptNo attempt, const NodeName& node) {
  return cluster.str() + "/" + job.str() + "." + std::to_string(attempt.value) + "@" + node.str();
}

}  // namespace muster::rundir
