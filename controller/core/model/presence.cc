#include "controller/core/model/presence.h"

#include <algorithm>

namespace muster::core {

BootTime last_word(const Presence& presence, const NodeName& node) {
  const auto seen = presence.nodes.find(node);
  if (seen == presence.nodes.end() || !seen->second.heard) return presence.listening_since;
  return std::max(seen->second.last_heard, presence.listening_since);
}

bool is_silent(const Presence& presence, const NodeName& node, BootTime now,
               Duration silent_after) {
  return now - last_word(presence, node) >= silent_after;
}

bool is_connected(const Presence& presence, const NodeName& node) {
  const auto seen = presence.nodes.find(node);
  return seen != presence.nodes.end() && seen->second.connection.value != 0;
}

bool is_forgotten(const Presence& presence, const NodeName& node,
                  const std::pair<JobId, AttemptNo>& run) {
  const auto seen = presence.nodes.find(node);
  return seen != presence.nodes.end() && seen->second.connection.value != 0 &&
         seen->second.forgotten.contains(run);
}

}  // namespace muster::core
