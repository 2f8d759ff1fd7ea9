// Candidates are the nodes that one placement checks, with what each could give the job now and if
// it were idle. Placer (place.cc) owns one for each placement. Pure.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/core/placement/card_choice.h"
#include "controller/core/placement/node_fit.h"
#include "controller/core/placement/placing.h"
#include "controller/core/placement/table_hosts.h"
#include "controller/core/recovery/start_failures.h"

namespace muster::core {

// Names the attempt that uses a device or port: "'x' attempt 2".
std::string describe(const Ledger& ledger, const AttemptKey& key);
std::string unknown_run_text(const AttemptKey& key);

class Candidates {
 public:
  explicit Candidates(const Placing& placing);

  // In the order of the spec's hosts or of its rank table, else by name.
  [[nodiscard]] const std::vector<const NodeRecord*>& nodes() const { return nodes_; }
  // Whether the ranks must have that order.
  [[nodiscard]] bool in_order() const {
    return own_ != nullptr || !placing_.job.spec.resources().hosts().empty();
  }
  // Nodes of the user's own rank table that do not exist. Empty: none is missing, or there is no
  // table.
  [[nodiscard]] const std::string& missing() const { return missing_; }
  // Nullptr: the job has no table of its own.
  [[nodiscard]] const OwnTable* own_table() const { return own_.get(); }

  // Sets the type of device that the checks below use.
  void consider(std::string_view type);
  [[nodiscard]] const std::string& type() const { return type_; }
  // For a gang over several nodes: if some nodes have an address that other hosts can reach, the
  // nodes without one are not used.
  void only_routable();
  void heed_pauses(bool heed);
  // Leaves nodes out for reasons that do not come from the node alone. `reasons` is parallel to
  // nodes(); empty: not left out. It replaces the earlier reasons.
  void leave_out(std::vector<std::string> reasons);
  [[nodiscard]] bool leaves_some_out() const { return !left_out_.empty(); }
  // The same, for another reason. Both count.
  void only_storage(std::vector<std::string> reasons);

  [[nodiscard]] Fit capacity(std::size_t at) const;
  // `only_usable`: a card that is bad, or in use by others now, does not count, and neither does a
  // node that drains.
  [[nodiscard]] bool could_hold(std::size_t at, bool only_usable) const {
    return !could_give(at, only_usable).empty();
  }
  // The devices that the job would get then; empty: none.
  [[nodiscard]] std::vector<std::uint32_t> could_give(std::size_t at, bool only_usable) const;
  // What the node can give now: as many devices as the job requires, or the reason why not.
  [[nodiscard]] const Fit& free(std::size_t at) const;

  [[nodiscard]] bool is_avoided(std::size_t at) const {
    return avoided_.contains(nodes_[at]->name);
  }
  [[nodiscard]] const std::map<NodeName, AvoidedNode>& avoided() const { return avoided_; }

 private:
  [[nodiscard]] Fit examine(const NodeRecord& node, std::size_t at) const;
  // Why the node can give nothing now, whatever its devices are. Empty: it can.
  [[nodiscard]] std::string away(const NodeRecord& node) const;
  [[nodiscard]] std::vector<std::uint32_t> choose(std::size_t at,
                                                  const std::vector<std::uint32_t>& usable) const;
  void forget() { free_.assign(nodes_.size(), std::nullopt); }

  const Placing& placing_;
  const std::map<NodeName, AvoidedNode> avoided_;
  const Ask ask_;
  std::shared_ptr<const OwnTable> own_;
  std::vector<const NodeRecord*> nodes_;
  std::string missing_;
  std::string type_;
  bool only_routable_ = false, heed_pauses_ = true;
  mutable std::vector<std::optional<Fit>> free_;  // parallel to nodes_, filled on demand
  std::vector<Fit> left_out_;                     // parallel to nodes_, or empty
  std::vector<Fit> other_storage_;                // the same
};

}  // namespace muster::core
