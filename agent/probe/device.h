// Device is one device of a node as a job sees it, found by npu-smi, by nvidia-smi, in a file, or
// from the number of cores. Plain values.
//
// Four kinds of numbers meet on Ascend nodes. On a host with eight cards all are equal.
//   - `id` is the logical number (DEVICE_ID, ASCEND_RT_VISIBLE_DEVICES); a container counts from 0.
//   - `physical_id` is the number on the host (/dev/davinciN, hccn_tool -i, device_id of rank
//     tables).
//   - `card` and `chip` are npu-smi's own numbers (-i, -c).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::agent::probe {

enum class DeviceType : std::uint8_t {
  Ascend910,
  Ascend910b,
  Ascend910_93,
  AscendOther,
  Nvidia,
  Cpu
};
// "ascend910" (910A, ProA, ProB, PremiumA), "ascend910b" (A2), "ascend910_93" (A3), "ascend" (310P,
// 950, unknown), "nvidia", "cpu".
std::string_view to_string(DeviceType type);
std::optional<DeviceType> device_type(std::string_view name);

enum class HealthLevel : std::uint8_t { Ok, Warning, Bad };
std::string_view to_string(HealthLevel level);

struct Health {
  HealthLevel level = HealthLevel::Ok;
  // "npu-smi says Alarm: 80E01801 node type=SOC, sensor type=Temperature"; empty = no remark
  std::string text;
  // Takes the worse level and appends the text.
  void add(HealthLevel other, std::string_view why);
};

// A process on a device that is not muster's.
struct Occupant {
  pid_t pid = 0;                            // the host's pid, as the tool prints it
  std::optional<pid_t> pid_in_container;    // as its own container sees it
  std::string name;                         // empty = the tool cannot see it
  std::string user;                         // empty = not known on this side
  std::optional<std::uint64_t> memory_mib;  // on the device
};

struct Device {
  std::uint32_t id = 0;
  std::uint32_t physical_id = 0;
  DeviceType type = DeviceType::Cpu;
  std::string name;    // "910B3", "NVIDIA H200"
  std::string bus_id;  // "0000:c1:00.0", as in /sys/bus/pci/devices; empty = not known
  std::string uuid;    // NVIDIA
  std::uint32_t card = 0, chip = 0;
  // of the HBM if the device has any
  std::optional<std::uint64_t> memory_total_mib, memory_used_mib;
  std::vector<std::string> addresses;                        // of the card's own network
  std::optional<std::string> super_device_id, super_pod_id;  // A3 in a super-pod; decimal
  std::optional<std::uint32_t> server_index;
  std::optional<int> numa_node;
  Health health;
  std::vector<Occupant> occupants;
};

// What one source found. `findings` are sentences about what failed or is odd, without a full stop.
struct Found {
  bool asked = false;  // the tool exists here
  bool none = false;   // and reports that there are no devices
  std::vector<Device> devices;
  std::vector<std::string> findings;
};

// One line, for people and golden files.
std::string to_text(const Device& device);

}  // namespace muster::agent::probe
