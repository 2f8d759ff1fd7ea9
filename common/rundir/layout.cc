#include "common/rundir/layout.h"

#include <algorithm>
#include <charconv>

namespace muster::rundir {
namespace {

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_';
}

// Parses a whole number in muster's own form: no sign, no leading zero.
std::optional<std::uint32_t> plain_number(std::string_view text) {
  std::uint32_t number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || rest != text.data() + text.size() ||
      (text.front() == '0' && text.size() > 1))
    return std::nullopt;
  return number;
}

}  // namespace

std::optional<std::pair<JobId, AttemptNo>> AgentLayout::parse_run_name(const std::string& name) {
  const auto dot = name.rfind('.');
  if (dot == std::string::npos || dot == 0 || dot + 1 == name.size()) return std::nullopt;
  const auto job = name.substr(0, dot);
  if (!std::ranges::all_of(job, is_name_character)) return std::nullopt;
  const auto attempt = plain_number(std::string_view(name).substr(dot + 1));
  if (!attempt || *attempt == 0) return std::nullopt;
  return std::pair(JobId(job), AttemptNo(*attempt));
}

bool is_auxiliary_name(std::string_view name) {
  return !name.empty() && name.size() <= 64 && std::ranges::all_of(name, is_name_character);
}

std::optional<std::uint32_t> rank_of_log(std::string_view file_name) {
  constexpr std::string_view kBegin = "rank-", kEnd = ".log";
  if (file_name.size() <= kBegin.size() + kEnd.size() || !file_name.starts_with(kBegin) ||
      !file_name.ends_with(kEnd))
    return std::nullopt;
  return plain_number(
      file_name.substr(kBegin.size(), file_name.size() - kBegin.size() - kEnd.size()));
}

std::optional<std::string> name_of_node_log(std::string_view file_name) {
  constexpr std::string_view kBegin = "auxiliary-", kEnd = ".log";
  if (file_name == "setup.log") return kSetupLog;
  if (file_name.size() <= kBegin.size() + kEnd.size() || !file_name.starts_with(kBegin) ||
      !file_name.ends_with(kEnd))
    return std::nullopt;
  const std::string_view name =
      file_name.substr(kBegin.size(), file_name.size() - kBegin.size() - kEnd.size());
  return is_auxiliary_name(name) ? std::optional<std::string>(name) : std::nullopt;
}

std::string process_tag(const ClusterId& cluster, const JobId& job, AttemptNo attempt,
                        const NodeName& node) {
  return cluster.str() + "/" + job.str() + "." + std::to_string(attempt.value) + "@" + node.str();
}

}  // namespace muster::rundir
