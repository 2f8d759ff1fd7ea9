// What npu-smi prints. Pure parsers: any bytes in, what could be read out; linear; never an error,
// an empty value is "nothing could be read". Formats: the tool's own sources
// (print_total_info_with_HBM, print_mapping_info, print_mapping_info_910_93,
// print_mapping_info_950, print_npu_spod_info, show_ascend_chip_health_info), recorded listings of
// 23.0 to 26.0, npu-smi manuals. Tables are read by the '|' and by what a cell holds, not by
// widths: these changed with 26.0. Its -t types are not the same on every board: an answer may be
// "not supported".
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
// A row of the first kind for the card (or die), one of the second for the chip. Phy-ID: A3 only.
// 310P: "Chip Device" (a logical number) and no HBM; 950: NPU ID in a column of its own, no chips.
// A second table holds the processes.
struct NpuChip {
  std::uint32_t card = 0, chip = 0;
  std::optional<std::uint32_t> physical, logic;
  std::string name, health;
  std::string bus_id;  // empty: "NA"
  std::optional<std::uint64_t> memory_used_mib, memory_total_mib;
  bool hbm = false;  // the memory is HBM
  bool ddr = false;  // it has DDR as well: only a 910 has both
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
  std::vector<std::string> messages;  // lines that are no table: errors, warnings; 8 at most
};
NpuInfo parse_npu_info(std::string_view text);

// "There is no NPU card on this server.", of -l, -m and the table alike.
bool says_no_card(std::string_view text);

// --- npu-smi info -m ---
//   NPU ID   Chip ID Chip Logic ID [Chip Phy-ID] Chip Name rows of "Mcu" have "-" for a logic id
//            and are none of ours
struct NpuPlace {
  std::uint32_t card = 0, chip = 0, logic = 0;
  std::optional<std::uint32_t> physical;
  bool a3 = false;   // a logic id and a Phy-ID: print_mapping_info_910_93 alone has both columns
  std::string name;  // "910B3": without the chip type ("Ascend ") that this form puts in front
};
std::vector<NpuPlace> parse_npu_mapping(std::string_view text);

// --- npu-smi info -l ---  "Total Count : 8", then "NPU ID : 0", "Chip Count : 1" a card
struct NpuList {
  std::optional<std::uint32_t> total;  // cards
  std::vector<std::uint32_t> cards;
};
NpuList parse_npu_list(std::string_view text);

// --- npu-smi info -t TYPE -i N -c C: "Key : value" lines ---
// The value of the first such line, trimmed; nothing where it is absent or "NA".
std::optional<std::string_view> fact(std::string_view text, std::string_view key);

struct NpuHealth {
  std::string status;  // OK | Warning | Alarm | Critical | UNKNOWN; empty: not said
  std::string error;   // "80E01801 node type=SOC, ..."
};
NpuHealth parse_npu_health(std::string_view text);

struct NpuBoard {
  std::string chip_name, bus_id;
};
NpuBoard parse_npu_board(std::string_view text);

struct NpuUsages {
  // HBM where there is any; used: from a rate in percent
  std::optional<std::uint64_t> memory_used_mib, memory_total_mib;
};
NpuUsages parse_npu_usages(std::string_view text);

// 4294967295 is the driver's "in no super-pod".
struct NpuSuperPod {
  std::optional<std::string> device_id, pod_id;
  std::optional<std::uint32_t> server_index;
};
NpuSuperPod parse_npu_super_pod(std::string_view text);

// --- what follows ---
// OK -> Ok, Warning -> Warning; Alarm, Critical and UNKNOWN (gone or not started) -> Bad.
HealthLevel level_of(std::string_view npu_health);

// With or without "Ascend" in front. "910B" alone is a 910 of the first kind, "910B3" an A2; a bare
// "910" or "Ascend910" tells nothing, so the table's form decides.
DeviceType type_of(std::string_view name, bool a3, bool has_ddr);

}  // namespace muster::agent::probe
