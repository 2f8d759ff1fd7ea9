// ChangeBudget bounds how fast one node can make the journal grow by what it says of itself: each
// Hello with other devices, findings or another version is a row that is kept. Plain value; pure.
#pragma once

#include <cstddef>
#include <map>

#include "common/base/ids.h"
#include "common/base/time.h"

namespace muster::core {

class ChangeBudget {
 public:
  // Of one node. An inventory has a few KiB, and 256 KiB at most.
  static constexpr std::size_t kBytesAnHour = 8 << 20;
  static constexpr std::size_t kBytesOfRow = 1 << 10;  // what a row costs besides the inventory

  // False: the node has used up its share, and may try again later.
  bool take(const NodeName& node, std::size_t inventory_bytes, BootTime now);

 private:
  struct Used {
    std::size_t bytes = 0;  // a share comes back within an hour
    BootTime at{};
  };
  [[nodiscard]] static std::size_t left_over(const Used& used, BootTime now);

  std::map<NodeName, Used> used_;  // without nodes that have used nothing for an hour
  BootTime swept_at_{};
};

}  // namespace muster::core
