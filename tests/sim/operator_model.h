// The operator who drains nodes and takes them back. World owns the OperatorModel. It runs on its
// history's one thread.
//
// In some histories nodes are drained during the storm, with and without a deadline, and undrained
// later. After the storm, one node is drained with a deadline while nothing disturbs: then nothing
// of a job may be left there when the time that a stop takes is over.
//
// In some histories nodes that are away, and of which nothing is open, are renamed during the
// storm. Their agents keep the old name, so each of them comes back as a new node, and the renamed
// one is removed.
//
// It has random numbers of its own, and others for the renames, so that a history without them is
// the same as it was before there were any.
#pragma once

#include <optional>
#include <set>

#include "common/base/ids.h"
#include "controller/core/model/input.h"
#include "tests/sim/random.h"

namespace muster::sim {

class World;

class OperatorModel {
 public:
  explicit OperatorModel(World& world);
  void begin();

 private:
  void drain_some();
  // Asks again until the ledger has it, because requests may be lost.
  void drain(const NodeName& node, std::optional<Time> deadline, Time until);
  void undrain_all_others();
  void drain_in_calm();
  void must_be_empty(const NodeName& node);
  void keep_store();
  void rename_some();
  void remove_renamed(const NodeName& node);
  void ask(core::Input input);
  [[nodiscard]] bool drains(const NodeName& node) const;

  World& world_;
  Rng rng_, renames_;
  std::set<NodeName> wanted_;  // drained, or to be drained
};

}  // namespace muster::sim
