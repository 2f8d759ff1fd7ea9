#include "deploy/rollout/revoked.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <sstream>

namespace muster::rollout {

// The ledger may have 100,000 certificates, which are more than one answer of a host. So only the
// lines of revoked ones leave it.
Result<RevokedKeys> read_revoked(ControllerHost& controller) {
  constexpr std::string_view kDoing = "asking the controller for its certificates";
  const auto text =
      controller.muster_list(kDoing, "cert ls -o jsonl", R"(sed -n '/"revokedAt"/p')");
  if (!text) return fail(Error(text.error()));
  RevokedKeys out;
  try {
    std::istringstream lines(*text);
    for (std::string line; std::getline(lines, line);) {
      const auto item = nlohmann::json::parse(line);
      if (!item.value("node", "").empty() && !item.value("revokedAt", "").empty())
        out[item.value("keySha256", "")] = item.value("why", "");
    }
  } catch (const nlohmann::json::exception&) {
    return fail(ErrorCode::DataLoss, fmt::format("{}: the answer makes no sense", kDoing));
  }
  return out;
}

void mark_revoked(Surveyed& agent, const RevokedKeys& revoked) {
  const auto at = revoked.find(agent.check.credentials_key);
  if (agent.error || agent.check.credentials_key.empty() || at == revoked.end()) return;
  agent.steps.issue = agent.steps.start = true;
  agent.findings.push_back(
      {.stops = false,
       .text = fmt::format("its certificate was revoked ('{}'), so it gets a new one; to keep it "
                           "out, take it out of hosts.yaml",
                           last_line(at->second))});
}

}  // namespace muster::rollout
