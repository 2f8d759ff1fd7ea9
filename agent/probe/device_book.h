// What the controller was told of this node's devices, and what the latest look at them says. Pure;
// one strand.
// A look may be wrong for once: a tool hangs, is replaced during an upgrade, prints half a table.
// So:
//   - what the latest look does not show is Bad at once, and stays announced;
//   - other devices are to be announced only when two looks in a row agree on them, or when nothing
//     is announced yet;
//   - a look without a device, or with CPU slots where there were cards, is a tool that failed:
//     what was announced stays;
//   - what a look says nothing of (an address, the size of the memory) is kept from earlier looks
//     at the same card.
// Devices that an earlier life of the agent announced stand until the first look that did not fail:
// that one alone confirms or replaces them. Of another boot they may be others than before, so
// nothing of them is kept beyond that look.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "agent/probe/probe.h"
#include "muster/v1/node.pb.h"

namespace muster::agent::probe {

// In Inventory.features: readings of every announced device come with the heartbeats, so that
// nothing
// is placed before the first of them.
inline constexpr std::string_view kDeviceReadings = "device-readings";

// Bounds of what goes into a message, whatever the tools say: sentences, their bytes, processes of
// one device.
inline constexpr std::size_t kFindingsMax = 32, kFindingBytesMax = 400, kReadingOccupantsMax = 16;

class DeviceBook {
 public:
  // Before the first look: these were announced by an earlier life (kept_devices.h), on this boot
  // or on another one.
  void restore(const v1::Inventory& kept, bool this_boot);
  // They stand still, and no look has confirmed or replaced them.
  [[nodiscard]] bool restored() const { return restored_ != Restored::No; }

  // The latest look. True: what is announced is to be announced anew: other devices, or, of
  // restored ones, other findings.
  bool take(Probed probed);
  // The devices and findings of the latest look are those to be told from now on.
  void announce();

  // Devices, findings and the feature, into what the node says of itself.
  void fill(v1::Inventory& inventory) const;
  [[nodiscard]] std::set<std::uint32_t> ids() const;
  // of the announced devices of which it is known
  [[nodiscard]] std::map<std::uint32_t, std::uint32_t> numa_nodes() const;
  // Of every announced device that can be looked at: CPU slots cannot.
  [[nodiscard]] std::vector<v1::DeviceReading> readings() const;
  // of the latest look
  [[nodiscard]] const std::vector<std::string>& findings() const { return seen_.findings; }

 private:
  enum class Restored : std::uint8_t { No, ThisBoot, AnotherBoot };
  [[nodiscard]] bool failed() const;

  Restored restored_ = Restored::No;
  std::vector<v1::Device> announced_;
  std::vector<std::string> announced_findings_;
  Probed seen_;  // the latest look
  // what it shows, when that is not what is announced
  std::optional<std::vector<v1::Device>> another_;
};

// As they are announced.
std::vector<v1::Device> to_v1(const std::vector<Device>& devices);

}  // namespace muster::agent::probe
