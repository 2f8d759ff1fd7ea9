// Which nodes see the same files below the directory of outputs, as far as their agents' checks
// say. Pure.
//
// An agent reads the id of the storage there, leaves a mark of its instance, and reports whose
// marks it sees (agent/probe/outputs_check.h). Two nodes share the storage if they have the same
// id and each sees the other's mark. They do not share it if the ids differ. The same id alone
// means little: a copy of a disk has it, too. Then they do not share it if the marks have not
// appeared while both were connected, and could write there, for kMarksAppear.
//
// What is not known never refuses anything.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "controller/core/model/ledger.h"
#include "controller/core/model/limits.h"
#include "controller/core/model/presence.h"

namespace muster::core {

// An agent renews its mark every 30 s, and a client of NFS may know the directory only as it was a
// minute ago.
inline constexpr Duration kMarksAppear = std::chrono::minutes(3);

class OutputsStorage {
 public:
  // `root`: the directory that the agents check; empty: nothing is known.
  OutputsStorage(const Presence& presence, const std::string& root, Now now);

  // A name of the node's storage: "3f9a1c02", or "3f9a1c02/2" for a copy of that one. Nodes with
  // the same name share the storage, nodes with different names do not. Empty: not known (yet).
  [[nodiscard]] const std::string& of(const NodeName& node) const;
  // Connected nodes with this storage.
  [[nodiscard]] std::size_t nodes_with(const std::string& storage) const;

 private:
  std::map<NodeName, std::string> of_;
  std::map<std::string, std::size_t> nodes_;
};

// True: the job runs on several nodes, goes on from its checkpoints, and these are below the
// directory that agents check.
[[nodiscard]] bool saves_below_outputs(const v1::JobSpec& spec, const v1::ResolvedSpec& resolved,
                                       const JobId& job, const Limits& limits);

// "'n0' and 2 others, 'n3'": the nodes by their storage. Nodes whose storage is not known are left
// out.
[[nodiscard]] std::string storages_text(const OutputsStorage& storage,
                                        const std::vector<NodeName>& nodes);

}  // namespace muster::core
