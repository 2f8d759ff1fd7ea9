// Chooses which of a node's devices a job gets. Pure.
//
// A job gets as many devices as it requires. Where the devices communicate by HCCL, the job gets
// only a set that HCCL accepts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/engine/ranktable/chip.h"
#include "controller/core/model/ledger.h"

namespace muster::core {

// What a job requires of one node.
struct Ask {
  std::size_t count = 1;
  std::vector<std::uint32_t> ids;  // exactly these; empty: any
};
Ask ask_of(const v1::JobSpec& spec);

// The devices of one type of a node. Refers to the node.
class NodeCards {
 public:
  NodeCards(const NodeRecord& node, const v1::JobSpec& spec, std::string_view type);

  // Chooses the job's devices in rank order: in the spec's order if possible, else ascending.
  // `usable` holds ids of such devices, ascending. Empty: no set fits.
  [[nodiscard]] std::vector<std::uint32_t> choose(const Ask& ask,
                                                  const std::vector<std::uint32_t>& usable) const;
  // The number of devices in each group that counts: "2+3", "5".
  [[nodiscard]] std::string tally(const std::vector<std::uint32_t>& devices) const;
  // Why no set of these devices fits, although there are enough. Empty: the reason is not known
  // here.
  [[nodiscard]] std::string refusal(const Ask& ask, const std::vector<std::uint32_t>& usable) const;
  // Which devices of one node the job must get together: " of one group (0-3 or 4-7)". Empty: any.
  [[nodiscard]] std::string together(const Ask& ask) const;

 private:
  [[nodiscard]] std::vector<std::uint32_t> choose_any(
      std::size_t count, const std::vector<std::uint32_t>& usable) const;
  [[nodiscard]] std::vector<std::uint32_t> physical(
      const std::vector<std::uint32_t>& devices) const;

  // id -> physical number, by id; only for a known chip.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> known_;
  std::optional<ranktable::Chip> chip_;     // the chip of all of them
  std::optional<ranktable::Chip> binding_;  // the chip whose rule the job must respect
  bool makes_table_;                        // muster makes the table for this job
  // taken first.
  // ascending; of a job over several nodes with such a table: these are taken first
  std::vector<std::uint32_t> addressed_;
  // Ascend's runtime numbers visible devices in ascending order. A rank table may have any order.
  bool upwards_;
};

}  // namespace muster::core
