// The nodes that a placement looks at, and what each of them could give the job: if it were idle,
// and now. Pure; lives for one placement.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/core/card_choice.h"
#include "controller/core/node_fit.h"
#include "controller/core/placing.h"
#include "controller/core/start_failures.h"
#include "controller/core/table_hosts.h"

namespace muster::core {

// "'x' attempt 2", for what holds something.
std::string describe(const Ledger& ledger, const AttemptKey& key);
std::string unknown_run_text(const AttemptKey& key);

class Candidates {
 public:
  explicit Candidates(const Placing& placing);

  // In the order of the spec's hosts or of its rank table, else by name.
  [[nodiscard]] const std::vector<const NodeRecord*>& nodes() const { return nodes_; }
  // That order is the ranks'.
  [[nodiscard]] bool in_order() const {
    return own_ != nullptr || !placing_.job.spec.resources().hosts().empty();
  }
  // Nodes of the user's own rank table that are not there; empty: none is missing, or there is no
  // table.
  [[nodiscard]] const std::string& missing() const { return missing_; }
  // Nullptr: the job has none of its own.
  [[nodiscard]] const OwnTable* own_table() const { return own_.get(); }

  // The type of device that is looked at from here on.
  void consider(std::string_view type);
  [[nodiscard]] const std::string& type() const { return type_; }
  // Of a gang over several nodes, some of which have an address that is not this host's alone, the
  // others are not used.
  void only_routable();
  void heed_pauses(bool heed);
  // For reasons that are not a node's alone, beside nodes(): empty where there is none. Instead of
  // those that were given before.
  void leave_out(std::vector<std::string> reasons);
  [[nodiscard]] bool leaves_some_out() const { return !left_out_.empty(); }

  [[nodiscard]] Fit capacity(std::size_t at) const;
  // Also with what is seen of its devices now: a card that is bad, or in use by others, does not
  // count.
  [[nodiscard]] bool could_hold(std::size_t at, bool only_usable) const {
    return !could_give(at, only_usable).empty();
  }
  // Which of its devices the job would get then; empty: none.
  [[nodiscard]] std::vector<std::uint32_t> could_give(std::size_t at, bool only_usable) const;
  // What the node can give now: as many as the job asks for, or why not.
  [[nodiscard]] const Fit& free(std::size_t at) const;

  [[nodiscard]] bool is_avoided(std::size_t at) const {
    return avoided_.contains(nodes_[at]->name);
  }
  [[nodiscard]] const std::map<NodeName, AvoidedNode>& avoided() const { return avoided_; }

 private:
  [[nodiscard]] Fit examine(const NodeRecord& node, std::size_t at) const;
  // Why nothing of the node is to be had now, whatever its devices are. Empty: it is not so.
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
  mutable std::vector<std::optional<Fit>> free_;  // beside nodes_, as far as asked for
  std::vector<Fit> left_out_;                     // beside nodes_, or none
};

}  // namespace muster::core
