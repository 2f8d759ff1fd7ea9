#include "controller/core/nodes/removal.h"

#include <fmt/format.h>

#include <optional>

#include "controller/core/nodes/drain.h"

namespace muster::core {
namespace {

const NodeParts* parts_of(const Ledger& ledger, const NodeName& node) {
  const auto parts = ledger.indexes.node_parts.find(node);
  return parts == ledger.indexes.node_parts.end() ? nullptr : &parts->second;
}

// An attempt that has reserved devices there, has a part there that is not swept, or has outputs
// there that are not uploaded.
std::optional<AttemptKey> attempt_there(const Ledger& ledger, const NodeName& node) {
  if (const NodeParts* parts = parts_of(ledger, node); parts != nullptr && !parts->unswept.empty())
    return *parts->unswept.begin();
  if (const auto key = uploads_there(ledger, node)) return key;
  const auto holders = ledger.indexes.device_holders.find(node);
  if (holders == ledger.indexes.device_holders.end()) return std::nullopt;
  return holders->second.begin()->second;
}

// One of these that has not ended.
std::optional<AttemptKey> open_attempt_there(const Ledger& ledger, const NodeName& node) {
  const auto is_open = [&](const AttemptKey& key) {
    return !is_over(ledger.jobs.at(key.first).attempt(key.second)->state);
  };
  if (const NodeParts* parts = parts_of(ledger, node)) {
    for (const AttemptKey& key : parts->open) {
      if (is_open(key)) return key;
    }
  }
  if (const auto holders = ledger.indexes.device_holders.find(node);
      holders != ledger.indexes.device_holders.end()) {
    for (const auto& [device, key] : holders->second) {
      if (is_open(key)) return key;
    }
  }
  return std::nullopt;
}

std::string text_of(const Ledger& ledger, const AttemptKey& key) {
  return fmt::format("attempt {} of job '{}'", key.second.value,
                     ledger.jobs.at(key.first).spec.name());
}

}  // namespace

std::string keeps_node(const Ledger& ledger, const Presence& presence, const NodeRecord& node) {
  if (is_connected(presence, node.name))
    return "its agent is connected; stop the agent there first, or it would come back at once";
  if (!node.dead) {
    if (const auto there = attempt_there(ledger, node.name))
      return fmt::format(
          "{} may still be there; wait until the node is back and has reported its end, or, if "
          "the machine is really gone, `muster node declare-dead {}` first",
          text_of(ledger, *there), node.name.str());
    if (const auto seen = presence.nodes.find(node.name);
        seen != presence.nodes.end() && !seen->second.unknown_runs.empty())
      return fmt::format(
          "a run that this journal does not have may still be there; if the machine is really "
          "gone, `muster node declare-dead {}` first",
          node.name.str());
  }
  if (const auto open = open_attempt_there(ledger, node.name))
    return fmt::format("{} has not ended yet; `muster why {}` says what it waits for",
                       text_of(ledger, *open), open->first.str());
  return {};
}

std::vector<EventBody> close_parts(const Ledger& ledger, const NodeName& node, WallTime now) {
  std::vector<EventBody> events;
  const NodeParts* parts = parts_of(ledger, node);
  if (parts == nullptr) return events;
  for (const AttemptKey& key : parts->open) {
    if (parts->unswept.contains(key))
      // A machine that is gone ends what ran there, as a restart does.
      events.emplace_back(NodeSwept{.job = key.first,
                                    .attempt = key.second,
                                    .node = node,
                                    .why = SweptWhy::Rebooted,
                                    .node_time = now,
                                    .controller_time = now});
    const NodePart& part = *ledger.jobs.at(key.first).attempt(key.second)->part(node);
    if (!part.logs_collected)
      events.emplace_back(LogsCollected{.job = key.first, .attempt = key.second, .node = node});
    if (part.uploads && (part.swept || part.ran()))
      events.emplace_back(OutputsUploaded{.job = key.first,
                                          .attempt = key.second,
                                          .node = node,
                                          .problem = "the node was removed",
                                          .node_time = now,
                                          .controller_time = now});
    if (part.uploads_logs)
      events.emplace_back(OutputsUploaded{.job = key.first,
                                          .attempt = key.second,
                                          .node = node,
                                          .problem = "the node was removed",
                                          .logs = true,
                                          .node_time = now,
                                          .controller_time = now});
  }
  return events;
}

}  // namespace muster::core
