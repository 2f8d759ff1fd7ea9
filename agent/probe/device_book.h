// DeviceBook keeps the devices that were announced to the controller, and what the latest probe
// shows. Agent (agent/loop.h) owns it. It runs on the agent's loop and does no I/O.
//
// One probe may be wrong: a tool hangs, is replaced during an upgrade, or prints half a table.
// Therefore:
//   - A device that the latest probe does not show is Bad at once, and stays announced.
//   - Other devices are announced only when two probes in a row agree on them, or when nothing is
//     announced yet.
//   - A probe without any device counts as a failed tool, and so does a probe with CPU slots where
//     there were cards. The announced devices then stay.
//   - What a probe does not show (an address, the size of the memory) is kept from earlier probes
//     of the same card.
//
// Devices that an earlier incarnation of the agent announced stay until the first probe that does
// not fail. That one probe confirms or replaces them. After another boot they may be other devices
// than before, so nothing of them is kept after that probe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/probe/probe.h"
#include "muster/v1/node.pb.h"

namespace muster::agent::probe {

// Bounds of a message, whatever the tools print: findings, bytes of a finding, processes of one
// device.
inline constexpr std::size_t kFindingsMax = 32, kFindingBytesMax = 400, kReadingOccupantsMax = 16;

class DeviceBook {
 public:
  // Call it before the first probe. An earlier incarnation announced these devices
  // (kept_devices.h), on this boot or on another one.
  void restore(const v1::Inventory& kept, bool this_boot);
  // The restored devices are still announced: no probe has confirmed or replaced them.
  [[nodiscard]] bool restored() const { return restored_ != Restored::No; }

  // Takes the latest probe. Returns true if the devices must be announced again: they are other
  // devices, or, after a restore, the findings are others.
  bool take(Probed probed);
  // Announces the devices and findings of the latest probe from now on.
  void announce();

  // Adds devices, findings and probes_devices to the inventory.
  void fill(v1::Inventory& inventory) const;
  [[nodiscard]] std::set<std::uint32_t> ids() const;
  // Only announced devices with a known NUMA node.
  [[nodiscard]] std::map<std::uint32_t, std::uint32_t> numa_nodes() const;
  // One reading of every announced device except CPU slots, which cannot be probed.
  [[nodiscard]] std::vector<v1::DeviceReading> readings() const;
  // Those of the latest probe.
  [[nodiscard]] const std::vector<std::string>& findings() const { return seen_.findings; }

 private:
  enum class Restored : std::uint8_t { No, ThisBoot, AnotherBoot };
  [[nodiscard]] bool failed() const;

  Restored restored_ = Restored::No;
  std::vector<v1::Device> announced_;
  std::vector<std::string> announced_findings_;
  Probed seen_;  // the latest probe
  // The devices of the latest probe, if they differ from the announced ones.
  std::optional<std::vector<v1::Device>> another_;
};

// Converts devices to the form in which they are announced.
std::vector<v1::Device> to_v1(const std::vector<Device>& devices);

}  // namespace muster::agent::probe
