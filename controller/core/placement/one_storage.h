// The storage that a job's nodes must share, with checkpoint.storage: shared. Placer (place.cc)
// owns one for each placement. Pure.
//
// It matters for a job over several nodes that saves below the directory that agents check
// (nodes/outputs_storage.h). A node whose storage is not known goes with every storage.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "controller/core/model/ledger.h"
#include "controller/core/placement/placing.h"

namespace muster::core {

class OneStorage {
 public:
  OneStorage(const Placing& placing, const std::vector<const NodeRecord*>& candidates);

  // False: any nodes may be taken together.
  [[nodiscard]] bool matters() const { return !storages_.empty(); }
  // Why the candidates that are `able` have no storage that `needed` of them share. Empty: they
  // have one.
  [[nodiscard]] std::string refuses(const std::vector<bool>& able, std::size_t needed) const;
  // The storages in the order in which they are tried: that of the attempt before comes first, then
  // those of most candidates.
  [[nodiscard]] const std::vector<std::string>& storages() const { return storages_; }
  // Why each candidate does not have this storage; empty: it has, or may have it. Parallel to the
  // candidates.
  [[nodiscard]] std::vector<std::string> reasons(const std::string& storage) const;

 private:
  std::string root_;
  std::vector<NodeName> names_;        // of the candidates
  std::vector<std::string> of_;        // parallel; empty: not known
  std::vector<std::string> storages_;  // two or more, or none
};

}  // namespace muster::core
