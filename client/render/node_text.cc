#include "client/render/node_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "client/render/text.h"
#include "common/proto/proto_time.h"

namespace muster::render {
namespace {

std::string without_drain(const v1::Node& node) {
  if (node.dead()) return "dead";
  if (node.connected() && !node.silent()) return node.disk_trouble().empty() ? "ready" : "disk";
  return node.silent() ? "silent" : "away";
}

}  // namespace

std::string node_state_text(const v1::Node& node) {
  std::string state = without_drain(node);
  if (!node.has_drain()) return state;
  const std::string drain = node.drain().drained() ? "drained" : "draining";
  return state == "ready" ? drain : state + ", " + drain;
}

Tint node_state_tint(const v1::Node& node) {
  if (node.dead()) return Tint::Bad;
  return without_drain(node) == "ready" && !node.has_drain() ? Tint::Good : Tint::Warn;
}

std::string drain_text(const v1::Drain& drain, WallTime now) {
  return fmt::format("by {} since {} ({}){}{}", printable(drain.actor()), iso_text(drain.since()),
                     ago_text(drain.since(), now), drain.why().empty() ? "" : ": ",
                     printable(drain.why()));
}

std::string drain_deadline_text(const v1::Drain& drain, WallTime now) {
  if (!drain.has_deadline() || drain.drained()) return {};
  const Duration left = to_wall(drain.deadline()) - now;
  if (left <= Duration::zero())
    return fmt::format("over since {}; what is left there is being stopped",
                       iso_text(drain.deadline()));
  return fmt::format("in {}, at {}: what still runs there is stopped then, and goes on elsewhere",
                     duration_text(left), iso_text(drain.deadline()));
}

std::map<std::string, std::string> node_labels(const v1::Node& node) {
  std::map<std::string, std::string> labels(node.labels().begin(), node.labels().end());
  labels.insert(node.inventory().labels().begin(), node.inventory().labels().end());
  return labels;
}

std::string labels_text(const v1::Node& node) {
  std::string text;
  for (const auto& [key, value] : node_labels(node))
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", key, value);
  return text.empty() ? "-" : printable(text);
}

std::string outputs_text(const v1::Node& node) {
  const v1::NodeOutputs& outputs = node.outputs();
  if (!node.has_outputs() || !node.connected()) return "-";
  if (!outputs.trouble().empty()) return "error";
  if (outputs.storage().empty()) return "?";
  return printable(fmt::format("{} ({})", outputs.storage(), outputs.nodes()));
}

}  // namespace muster::render
