#include "controller/api/node_answer.h"

#include "controller/api/convert.h"

namespace muster::controller {

v1::Node show_node(const core::NodeRecord& node, const View& view) {
  return to_v1(node, view.ledger, view.presence, view.now.boot, view.limits.silent_after);
}

v1::Node show_whole_node(const core::NodeRecord& node, const View& view) {
  v1::Node shown = show_node(node, view);
  for (NodeDetail detail = NodeDetail::Full;
       shrink(shown, detail) > kNodesBytes && detail != NodeDetail::Least;)
    detail = less(detail);
  return shown;
}

}  // namespace muster::controller
