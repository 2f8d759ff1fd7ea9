#include "deploy/rollout/revoked.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace muster::rollout {

Result<RevokedKeys> read_revoked(ControllerHost& controller) {
  constexpr std::string_view kDoing = "asking the controller for its certificates";
  const auto text = controller.muster(kDoing, "cert ls -o json");
  if (!text) return fail(Error(text.error()));
  RevokedKeys out;
  try {
    const auto answer = nlohmann::json::parse(*text);
    for (const auto& item : answer.at("items"))
      if (!item.value("node", "").empty() && !item.value("revokedAt", "").empty())
        out[item.value("keySha256", "")] = item.value("why", "");
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
