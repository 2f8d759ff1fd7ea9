// Which of a node's devices a job gets: as many as it asks for, and where its devices talk by HCCL
// only such a set as HCCL takes. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/engine/ranktable/chip.h"
#include "controller/core/ledger.h"

namespace muster::core {

// What a job wants of one node.
struct Ask {
  std::size_t count = 1;
  std::vector<std::uint32_t> ids;  // these and no others; empty: any
};
Ask ask_of(const v1::JobSpec& spec);

// The node's devices of one type. Refers to the node.
class NodeCards {
 public:
  NodeCards(const NodeRecord& node, const v1::JobSpec& spec, std::string_view type);

  // Of `usable` (ids of such devices, ascending) those that the job gets, in rank order: as the
  // spec lists them where that can be, else upwards. Empty: no set would do.
  [[nodiscard]] std::vector<std::uint32_t> choose(const Ask& ask,
                                                  const std::vector<std::uint32_t>& usable) const;
  // How many, in the groups that count: "2+3", "5".
  [[nodiscard]] std::string tally(const std::vector<std::uint32_t>& devices) const;
  // Why there is no set of these, which are enough; empty: that is not known here.
  [[nodiscard]] std::string refusal(const Ask& ask, const std::vector<std::uint32_t>& usable) const;
  // How the devices of one node have to lie: " of one group (0-3 or 4-7)"; empty: anyhow.
  [[nodiscard]] std::string together(const Ask& ask) const;

 private:
  [[nodiscard]] std::vector<std::uint32_t> choose_any(
      std::size_t count, const std::vector<std::uint32_t>& usable) const;
  [[nodiscard]] std::vector<std::uint32_t> physical(
      const std::vector<std::uint32_t>& devices) const;

  // id -> physical number, by id; of a known chip
  std::vector<std::pair<std::uint32_t, std::uint32_t>> known_;
  std::optional<ranktable::Chip> chip_;     // of all of them
  std::optional<ranktable::Chip> binding_;  // whose rule the job has to keep
  bool makes_table_;                        // muster, for this job
  // ascending; of a job over several nodes with such a table: these are taken first
  std::vector<std::uint32_t> addressed_;
  // Ascend's runtime numbers visible devices so; a rank table may have them in any order
  bool upwards_;
};

}  // namespace muster::core
