// Parses what npu-smi prints. Pure: the parsers accept any bytes, are linear and never fail; an
// empty value means that nothing could be read.
//
// Formats come from:
//   - the tool's own sources (print_total_info_with_HBM, print_mapping_info,
//     print_mapping_info_910_93, print_mapping_info_950, print_npu_spod_info,
//     show_ascend_chip_health_info)
//   - recorded listings of releases 23.0 to 26.0
//   - the manuals of npu-smi
//
// Tables are split at '|' and recognized by the content of their cells. Column widths are not used,
// because they changed with 26.0. The -t types differ between boards: an answer may be "not
// supported".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/probe/device.h"

namespace muster::agent::probe {

// --- npu-smi info ---
//   | NPU   Name    | Health       | Power(W)  Temp(C)          Hugepages-Usage(page)|
//   | Chip  Phy-ID  | Bus-Id       | AICore(%) Memory-Usage(MB) HBM-Usage(MB)        |
// A card (or die) has one row of the first kind, and a chip one of the second. Only A3 has Phy-ID.
// 310P has "Chip Device" (a logical number) and no HBM. 950 has NPU ID in a column of its own and
// no chips. A second table holds the processes.
struct NpuChip {
  std::uint32_t card = 0, chip = 0;
  std::optional<std::uint32_t> physical, logic;
  std::string name, health;
  std::string bus_id;  // empty: "NA"
  std::optional<std::uint64_t> memory_used_mib, memory_total_mib;
  bool hbm = false;  // the memory is HBM
  bool ddr = false;  // it has DDR too; only a 910 has both
};
struct NpuProcess {
  std::uint32_t card = 0, chip = 0;
  Occupant occupant;
};
struct NpuInfo {
  std::string version;
  bool a3 = false;  // the header has Phy-ID: print_total_info_with_HBM writes that for 910_93 alone
  std::vector<NpuChip> chips;
  std::vector<std::uint32_t> half;  // cards whose chip row is missing or unreadable
  std::vector<NpuProcess> processes;
  std::vector<std::string> messages;  // lines outside tables: errors, warnings; at most 8
};
NpuInfo parse_npu_info(std::string_view text);

// "There is no NPU card on this server.", of -l, -m and the table alike.
bool says_no_card(std::string_view text);

// --- npu-smi info -m ---
//   NPU ID   Chip ID Chip Logic ID [Chip Phy-ID] Chip Name
// Rows of "Mcu" have "-" as logic id and are skipped.
struct NpuPlace {
  std::uint32_t card = 0, chip = 0, logic = 0;
  std::optional<std::uint32_t> physical;
  bool a3 = false;   // has a logic id and a Phy-ID: only print_mapping_info_910_93 has both columns
  std::string name;  // "910B3"; the chip type ("Ascend ") before it is removed
};
std::vector<NpuPlace> parse_npu_mapping(std::string_view text);

// --- npu-smi info -l ---  "Total Count : 8", then "NPU ID : 0", "Chip Count : 1" for each card
struct NpuList {
  std::optional<std::uint32_t> total;  // cards
  std::vector<std::uint32_t> cards;
};
NpuList parse_npu_list(std::string_view text);

// --- npu-smi info -t TYPE -i N -c C: "Key : value" lines ---
// Returns the value of the first such line, trimmed. Returns nullopt if it is absent or "NA".
std::optional<std::string_view> fact(std::string_view text, std::string_view key);

struct NpuHealth {
  std::string status;  // OK | Warning | Alarm | Critical | UNKNOWN; empty: not printed
  std::string error;   // "80E01801 node type=SOC, ..."
};
NpuHealth parse_npu_health(std::string_view text);

struct NpuBoard {
  std::string chip_name, bus_id;
};
NpuBoard parse_npu_board(std::string_view text);

struct NpuUsages {
  // Of the HBM if there is any. `used` is computed from a rate in percent.
  std::optional<std::uint64_t> memory_used_mib, memory_total_mib;
};
NpuUsages parse_npu_usages(std::string_view text);

// The driver prints 4294967295 for "in no super-pod".
struct NpuSuperPod {
  std::optional<std::string> device_id, pod_id;
  std::optional<std::uint32_t> server_index;
};
NpuSuperPod parse_npu_super_pod(std::string_view text);

// --- conclusions ---
// OK -> Ok, Warning -> Warning; Alarm, Critical and UNKNOWN (gone or not started) -> Bad.
HealthLevel level_of(std::string_view npu_health);

// Accepts names with or without "Ascend" in front. "910B" alone is a 910 of the first kind, and
// "910B3" is an A2. A bare "910" or "Ascend910" does not show the type, so the form of the table
// decides.
DeviceType type_of(std::string_view name, bool a3, bool has_ddr);

}  // namespace muster::agent::probe
