#include "controller/api/node_answer.h"

#include "controller/api/bounded.h"
#include "controller/api/convert.h"

namespace muster::controller {

v1::Node show_node(const core::NodeRecord& node, const View& view,
                   const core::OutputsStorage& storage) {
  v1::Node shown = to_v1(node, view.ledger, view.presence, view.now.boot, view.limits.silent_after);
  const auto seen = view.presence.nodes.find(node.name);
  if (seen == view.presence.nodes.end() || !seen->second.outputs) return shown;
  v1::NodeOutputs& outputs = *shown.mutable_outputs();
  outputs.set_root(bounded(seen->second.outputs->root));
  outputs.set_trouble(bounded(seen->second.outputs->trouble));
  outputs.set_storage(storage.of(node.name));
  outputs.set_nodes(static_cast<std::uint32_t>(storage.nodes_with(outputs.storage())));
  return shown;
}

v1::Node show_whole_node(const core::NodeRecord& node, const View& view) {
  v1::Node shown = show_node(
      node, view, core::OutputsStorage(view.presence, view.limits.outputs_root, view.now));
  for (NodeDetail detail = NodeDetail::Full;
       shrink(shown, detail) > kNodesBytes && detail != NodeDetail::Least;)
    detail = less(detail);
  return shown;
}

}  // namespace muster::controller
