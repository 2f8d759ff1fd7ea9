#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "common/base/names.h"
#include "controller/core/access/certificates.h"
#include "controller/core/decide.h"
#include "controller/core/nodes/removal.h"

namespace muster::core {
namespace {

constexpr std::size_t kOperatorLabelsMax = 256;  // of a node, as in a Hello

Decision no_such_node(std::string_view doing, const NodeName& node) {
  return refuse(ErrorCode::NotFound,
                fmt::format("{} node '{}': there is no such node", doing, node.str()));
}

}  // namespace

Decision decide_one(const Deciding& in, const DrainNode& input) {
  const auto found = in.ledger.nodes.find(input.node);
  if (found == in.ledger.nodes.end()) return no_such_node("draining", input.node);
  const std::optional<NodeDrained>& before = found->second.drain;
  const bool same_why = before && (input.why.empty() || input.why == before->why);
  if (same_why && !input.deadline) return nothing();
  NodeDrained drained = before.value_or(NodeDrained{.node = input.node, .since = in.now.wall});
  drained.actor = input.actor;
  if (!input.why.empty()) drained.why = input.why;
  if (input.deadline) drained.deadline = in.now.wall + *input.deadline;
  return accept(std::move(drained));
}

Decision decide_one(const Deciding& in, const UndrainNode& input) {
  const auto found = in.ledger.nodes.find(input.node);
  if (found == in.ledger.nodes.end()) return no_such_node("undraining", input.node);
  if (!found->second.drain) return nothing();
  return accept(NodeUndrained{.node = input.node, .actor = input.actor});
}

Decision decide_one(const Deciding& in, const LabelNode& input) {
  const auto found = in.ledger.nodes.find(input.node);
  if (found == in.ledger.nodes.end()) return no_such_node("labelling", input.node);
  const NodeRecord& node = found->second;
  NodeLabelled labelled{.node = input.node, .actor = input.actor, .labels = node.labels};
  for (const std::string& key : input.remove) {
    if (labelled.labels.erase(key) > 0 || input.set.contains(key)) continue;
    const bool agents = node.inventory.labels().contains(key);
    return refuse(
        ErrorCode::NotFound,
        fmt::format("labelling node '{}': no operator has set label '{}'{}", input.node.str(), key,
                    agents ? "; it is of the node's agent (--label), which has to be "
                             "restarted without it"
                           : ""));
  }
  for (const auto& [key, value] : input.set) labelled.labels[key] = value;
  if (labelled.labels.size() > kOperatorLabelsMax)
    return refuse(ErrorCode::InvalidArgument,
                  fmt::format("labelling node '{}': it would have {} labels of operators, at most "
                              "{} are taken",
                              input.node.str(), labelled.labels.size(), kOperatorLabelsMax));
  if (labelled.labels == node.labels) return nothing();
  return accept(std::move(labelled));
}

Decision decide_one(const Deciding& in, const RemoveNode& input) {
  const auto found = in.ledger.nodes.find(input.node);
  if (found == in.ledger.nodes.end()) return no_such_node("removing", input.node);
  if (std::string why = keeps_node(in.ledger, in.presence, found->second); !why.empty())
    return refuse(ErrorCode::Conflict,
                  fmt::format("removing node '{}': {}", input.node.str(), why));
  Decision decision;
  decision.events = close_parts(in.ledger, input.node, in.now.wall);
  decision.events.emplace_back(NodeRemoved{.node = input.node, .actor = input.actor});
  return decision;
}

Decision decide_one(const Deciding& in, const RenameNode& input) {
  const auto found = in.ledger.nodes.find(input.node);
  if (found == in.ledger.nodes.end()) return no_such_node("renaming", input.node);
  const std::string doing = fmt::format("renaming node '{}'", input.node.str());
  if (!is_node_name(input.new_name.str()))
    return refuse(ErrorCode::InvalidArgument,
                  doing +
                      ": the new name has to be 1 to 63 letters, digits, '.', '_', '-', the "
                      "first a letter or digit");
  if (input.new_name == input.node)
    return refuse(ErrorCode::InvalidArgument, doing + ": it has this name already");
  if (in.ledger.nodes.contains(input.new_name))
    return refuse(ErrorCode::Conflict,
                  fmt::format("{0}: there is a node '{1}'; take another name, or, if that one is "
                              "gone for good, `muster node rm {1}` first",
                              doing, input.new_name.str()));
  if (std::string why = keeps_node(in.ledger, in.presence, found->second); !why.empty())
    return refuse(ErrorCode::Conflict, fmt::format("{}: {}", doing, why));
  // The machine gets a certificate of its new name. Those of the old one are nobody's any more, and
  // those of the new one are of a node that had it before.
  Decision decision;
  decision.events = close_parts(in.ledger, input.node, in.now.wall);
  const std::string renamed =
      fmt::format("node '{}' was renamed to '{}'", input.node.str(), input.new_name.str());
  for (const auto& [name, why] :
       {std::pair(input.node, fmt::format("the node was renamed to '{}'", input.new_name.str())),
        std::pair(input.new_name, renamed)}) {
    Decision revoked =
        decide_revoke(in.ledger,
                      {.subject = Subject{.role = SubjectRole::Node, .name = name.str()},
                       .why = why,
                       .actor = input.actor},
                      in.now.wall);
    if (revoked.refusal) return {.refusal = std::move(*revoked.refusal).in(doing)};
    std::ranges::move(revoked.events, std::back_inserter(decision.events));
  }
  decision.events.emplace_back(
      NodeRenamed{.node = input.node, .new_name = input.new_name, .actor = input.actor});
  return decision;
}

}  // namespace muster::core
