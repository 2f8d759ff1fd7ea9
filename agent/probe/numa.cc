#include "agent/probe/numa.h"

#include "agent/probe/text.h"
#include "common/engine/ranktable/words.h"
#include "common/io/file.h"

namespace muster::agent::probe {

std::optional<int> numa_node_of(const std::filesystem::path& sys, const std::string& bus_id) {
  if (!pci_address(bus_id)) return std::nullopt;
  const auto text = io::read_file(sys / "bus/pci/devices" / bus_id / "numa_node", 64);
  if (!text) return std::nullopt;
  const auto node = ranktable::parse_number(ranktable::trimmed(*text), 4095);
  return node ? std::optional<int>(static_cast<int>(*node)) : std::nullopt;
}

}  // namespace muster::agent::probe
