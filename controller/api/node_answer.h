// Makes the answers about nodes. Pure. The functions run on the shell's strand.
#pragma once

#include <cstddef>

#include "controller/core/model/ledger.h"
#include "controller/core/nodes/outputs_storage.h"
#include "controller/shell/view.h"
#include "muster/v1/node.pb.h"

namespace muster::controller {

// Below the 4 MiB that gRPC's clients take unless they are configured otherwise. Some hundreds of
// nodes fit in full. Some 2,000 nodes with 16 devices fit with what a list needs, and twice as many
// without readings. Of more nodes only names and addresses fit.
inline constexpr std::size_t kNodesBytes = 3 << 20;

v1::Node show_node(const core::NodeRecord& node, const View& view,
                   const core::OutputsStorage& storage);
// At most kNodesBytes: the readings of very many devices with many occupants are longer than a
// message may be.
v1::Node show_whole_node(const core::NodeRecord& node, const View& view);

}  // namespace muster::controller
