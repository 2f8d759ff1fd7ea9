#include "agent/probe/npu_smi.h"

#include <algorithm>
#include <array>

#include "agent/probe/text.h"
#include "common/engine/ranktable/words.h"

namespace muster::agent::probe {
namespace {

constexpr std::uint32_t kNumberMax = 1023;  // of cards, chips and devices
constexpr std::size_t kMessagesMax = 8;

std::optional<std::uint32_t> small(std::string_view text) {
  return ranktable::parse_number(text, kNumberMax);
}

bool is_absent(std::string_view cell) {
  return cell.empty() || cell == "NA" || cell == "N/A" || cell == "-";
}

// The cells of "| a | b | c |".
std::vector<std::string_view> cells_of(std::string_view line) {
  return split(line.substr(1, line.size() - 2), '|', 8);
}

std::string_view without_maker(std::string_view name) {
  return name.starts_with("Ascend") && name.size() > 6 ? name.substr(6) : name;
}

// "0           0    / 0          26838/ 32768": the pairs.
struct Pair {
  std::optional<std::uint64_t> used, total;
};
std::vector<Pair> pairs_of(std::string_view cell) {
  std::vector<Pair> pairs;
  std::size_t from = 0;
  while (pairs.size() < 4) {
    const std::size_t slash = cell.find('/', from);
    if (slash == std::string_view::npos) break;
    const auto before = words_of(cell.substr(from, slash - from)),
               after = words_of(cell.substr(slash + 1));
    Pair pair;
    if (!before.empty()) pair.used = parse_u64(before.back());
    if (!after.empty()) pair.total = parse_u64(after.front());
    pairs.push_back(pair);
    from = slash + 1;
  }
  return pairs;
}

class InfoReader {
 public:
  NpuInfo read(std::string_view text) {
    std::string_view line;
    while (next_line(text, line)) {
      if (line.empty() || line.front() == '+') continue;
      if (line.front() == '|') {
        // otherwise the line was cut off, and half a number is no number
        if (line.size() > 1 && line.back() == '|') row(cells_of(line));
      } else if (info_.messages.size() < kMessagesMax) {
        info_.messages.push_back(clean(line, 160));
      }
    }
    drop_card();
    return std::move(info_);
  }

 private:
  void row(const std::vector<std::string_view>& cells) {
    if (cells.size() == 1) return title(cells[0]);
    if (cells.size() < 3 || header(cells)) return;
    // more cells: a bar in the name of a process
    if (part_ == Part::Processes) return cells.size() < width_ ? void() : process(cells);
    if (part_ != Part::Devices || cells.size() != width_) return;
    const std::string_view second = cells[cells.size() - 2];
    if (is_absent(second) || pci_address(second)) {
      chip(cells);
    } else {
      card(cells);
    }
  }

  void title(std::string_view cell) {
    const auto words = words_of(cell);
    if (words.size() > 1 && words[0] == "npu-smi") info_.version = clean(words[1], 40);
  }

  bool header(const std::vector<std::string_view>& cells) {
    const auto words = words_of(cells[0]);
    // The 950 has the NPU ID in a column of its own.
    const bool own_column = words.size() == 2 && words[0] == "NPU" && words[1] == "ID";
    if (std::ranges::find(cells, "Process id") != cells.end()) {
      drop_card();
      part_ = Part::Processes;
      width_ = cells.size();
      own_column_ = own_column;
      container_column_.reset();
      for (std::size_t at = 0; at < cells.size(); ++at) {
        if (cells[at] == "Process id in container") container_column_ = at;
      }
      return true;
    }
    if (std::ranges::find(cells, "Health") != cells.end()) {
      part_ = Part::Devices;
      width_ = cells.size();
      own_column_ = own_column;
      return true;
    }
    if (std::ranges::find(cells, "Bus-Id") != cells.end()) {
      second_number_ = words.size() == 2 ? words[1] : std::string_view{};
      info_.a3 = info_.a3 || second_number_ == "Phy-ID";
      hbm_ = cells.back().find("HBM") != std::string_view::npos;
      return true;
    }
    return false;
  }

  // "| 0     910B3   | OK | 98.1  38  0 / 0 |", or "| 0 | Ascend950DT | OK | ... |"
  void card(const std::vector<std::string_view>& cells) {
    drop_card();
    const auto words = words_of(cells[0]);
    const auto number = words.empty() ? std::nullopt : small(words[0]);
    if (!number) return;
    NpuChip chip{.card = *number};
    chip.name =
        clean(own_column_ ? cells[1]
              : words.size() > 1
                  ? cells[0].substr(static_cast<std::size_t>(words[1].data() - cells[0].data()))
                  : "");
    chip.health = clean(cells[cells.size() - 2], 20);
    card_ = std::move(chip);
    chips_of_card_ = 0;
  }

  // "| 0     4       | 0000:95:00.0 | 0  0 / 0  3411 / 65536 |"
  void chip(const std::vector<std::string_view>& cells) {
    if (!card_ || info_.chips.size() >= kDevicesMax) return;
    NpuChip chip = *card_;
    const auto words = words_of(cells[0]);
    if (own_column_) {
      chip.logic = chip.physical = chip.card;
    } else {
      const auto number = words.empty() ? std::nullopt : small(words[0]);
      if (!number) return;
      chip.chip = *number;
      if (words.size() > 1 && second_number_ == "Phy-ID") chip.physical = small(words[1]);
      if (words.size() > 1 && second_number_ == "Device") chip.logic = small(words[1]);
    }
    const std::string_view bus = cells[cells.size() - 2];
    chip.bus_id = pci_address(bus).value_or("");
    const auto pairs = pairs_of(cells.back());
    if (!pairs.empty()) {
      chip.memory_used_mib = pairs.back().used;
      chip.memory_total_mib = pairs.back().total;
    }
    chip.hbm = hbm_ && pairs.size() > 1;
    chip.ddr = chip.hbm && pairs.front().total.value_or(0) > 0;
    info_.chips.push_back(std::move(chip));
    ++chips_of_card_;
  }

  void drop_card() {
    if (card_ && chips_of_card_ == 0 && info_.half.size() < kDevicesMax)
      info_.half.push_back(card_->card);
    card_.reset();
  }

  // "| 0       1     | 1777209 | VLLMWorker_PP | 56684 | NA |"
  void process(const std::vector<std::string_view>& cells) {
    if (info_.processes.size() >= kOccupantsMax) return;
    const auto words = words_of(cells[0]);
    const auto card = words.empty() ? std::nullopt : small(words[0]);
    const auto chip = own_column_        ? std::optional<std::uint32_t>(0)
                      : words.size() > 1 ? small(words[1])
                                         : std::nullopt;
    const auto pid = ranktable::parse_number(cells[1], 0x7FFFFFFF);
    if (!card || !chip || !pid) return;
    NpuProcess process{.card = *card, .chip = *chip, .occupant = {}};
    process.occupant.pid = static_cast<pid_t>(*pid);
    if (!is_absent(cells[2])) process.occupant.name = clean(cells[2], 60);
    if (cells.size() > 3) process.occupant.memory_mib = parse_u64(cells[3]);
    if (container_column_ && *container_column_ < cells.size()) {
      if (const auto inner = ranktable::parse_number(cells[*container_column_], 0x7FFFFFFF))
        process.occupant.pid_in_container = static_cast<pid_t>(*inner);
    }
    info_.processes.push_back(std::move(process));
  }

  enum class Part : std::uint8_t { Before, Devices, Processes };
  NpuInfo info_;
  Part part_ = Part::Before;
  std::optional<NpuChip> card_;
  std::size_t chips_of_card_ = 0;
  std::size_t width_ = 0;  // cells of the part's header: a row with fewer was cut off
  bool own_column_ = false, hbm_ = false;
  std::string_view second_number_;  // "Phy-ID" | "Device" | ""
  std::optional<std::size_t> container_column_;
};

}  // namespace

NpuInfo parse_npu_info(std::string_view text) { return InfoReader().read(text); }

bool says_no_card(std::string_view text) {
  return text.find("There is no NPU card on this server") != std::string_view::npos;
}

std::vector<NpuPlace> parse_npu_mapping(std::string_view text) {
  // All fields of a row before the name are single words. Their positions in the header are
  // therefore their positions in the row.
  constexpr std::array<std::string_view, 6> kLabels = {"NPU ID",        "Slot ID",     "Chip ID",
                                                       "Chip Logic ID", "Chip Phy-ID", "Chip Name"};
  std::vector<NpuPlace> places;
  std::array<std::optional<std::size_t>, kLabels.size()> column;
  bool headed = false;
  std::string_view line;
  while (next_line(text, line) && places.size() < kDevicesMax) {
    if (line.find("NPU ID") != std::string_view::npos &&
        line.find("Chip Name") != std::string_view::npos) {
      std::vector<std::pair<std::size_t, std::size_t>> found;  // position, index of the label
      for (std::size_t label = 0; label < kLabels.size(); ++label) {
        if (const std::size_t at = line.find(kLabels[label]); at != std::string_view::npos)
          found.emplace_back(at, label);
      }
      std::ranges::sort(found);
      column = {};
      for (std::size_t at = 0; at < found.size(); ++at) column[found[at].second] = at;
      headed = true;
      continue;
    }
    if (!headed) continue;
    const auto words = words_of(line);
    const auto number = [&](std::size_t label) {
      return column[label] && *column[label] < words.size() ? small(words[*column[label]])
                                                            : std::nullopt;
    };
    const auto card = number(0), chip = number(2), physical = number(4);
    // The 950's NPU ID is the logical number.
    const auto logic = column[3] ? number(3) : card;
    // an Mcu, no row, or a row that was cut off
    if (!card || !chip || !logic || *column[5] >= words.size()) continue;
    NpuPlace place{.card = *card,
                   .chip = *chip,
                   .logic = *logic,
                   .physical = physical,
                   .a3 = column[3] && column[4],
                   .name = {}};
    std::string_view name =
        line.substr(static_cast<std::size_t>(words[*column[5]].data() - line.data()));
    if (name.starts_with("Ascend ")) name.remove_prefix(7);  // chip type and name
    place.name = clean(name, 40);
    places.push_back(std::move(place));
  }
  return places;
}

NpuList parse_npu_list(std::string_view text) {
  NpuList list;
  std::string_view line;
  while (next_line(text, line) && list.cards.size() < kDevicesMax) {
    const auto parts = split(line, ':', 2);
    if (parts.size() != 2) continue;
    if (parts[0] == "Total Count" || parts[0] == "Card Count") list.total = small(parts[1]);
    if (parts[0] == "NPU ID") {
      if (const auto card = small(parts[1])) list.cards.push_back(*card);
    }
  }
  return list;
}

std::optional<std::string_view> fact(std::string_view text, std::string_view key) {
  std::string_view line;
  while (next_line(text, line)) {
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || ranktable::trimmed(line.substr(0, colon)) != key)
      continue;
    const std::string_view value = ranktable::trimmed(line.substr(colon + 1));
    return is_absent(value) ? std::nullopt : std::optional(value);
  }
  return std::nullopt;
}

NpuHealth parse_npu_health(std::string_view text) {
  NpuHealth health;
  auto status = fact(text, "Health Status");
  if (!status) status = fact(text, "Health");  // of a whole card
  if (status) health.status = clean(*status, 20);
  for (const std::string_view key : {"Error Code", "Error Information"}) {
    if (const auto value = fact(text, key))
      health.error += (health.error.empty() ? "" : " ") + clean(*value, 160);
  }
  return health;
}

NpuBoard parse_npu_board(std::string_view text) {
  NpuBoard board;
  if (const auto name = fact(text, "Chip Name")) board.chip_name = clean(*name, 40);
  if (const auto bus = fact(text, "PCIe Bus Info")) board.bus_id = pci_address(*bus).value_or("");
  return board;
}

NpuUsages parse_npu_usages(std::string_view text) {
  const auto number = [&](std::string_view key) -> std::optional<std::uint64_t> {
    const auto value = fact(text, key);
    return value ? parse_u64(*value) : std::nullopt;
  };
  NpuUsages usages;
  constexpr std::array<std::array<std::string_view, 2>, 3> kMemories = {
      {{"HBM Capacity(MB)", "HBM Usage Rate(%)"},
       {"DDR Capacity(MB)", "DDR Usage Rate(%)"},
       {"Memory Capacity(MB)", "Memory Usage Rate(%)"}}};
  for (const auto& [capacity, rate] : kMemories) {
    const auto total = number(capacity);
    if (!total || *total == 0 || *total > (1ULL << 32U)) continue;
    usages.memory_total_mib = total;
    if (const auto percent = number(rate); percent && *percent <= 100)
      usages.memory_used_mib = *total * *percent / 100;
    break;
  }
  return usages;
}

NpuSuperPod parse_npu_super_pod(std::string_view text) {
  const auto number = [&](std::string_view key) -> std::optional<std::uint32_t> {
    const auto value = fact(text, key);
    return value ? ranktable::parse_number(*value, 0xFFFFFFFE) : std::nullopt;
  };
  NpuSuperPod pod;
  if (const auto id = number("SDID")) pod.device_id = std::to_string(*id);
  if (const auto id = number("Super Pod ID")) pod.pod_id = std::to_string(*id);
  pod.server_index = number("Server Index");
  return pod;
}

HealthLevel level_of(std::string_view npu_health) {
  if (npu_health == "OK") return HealthLevel::Ok;
  return npu_health == "Warning" ? HealthLevel::Warning : HealthLevel::Bad;
}

DeviceType type_of(std::string_view name, bool a3, bool has_ddr) {
  name = without_maker(name);
  if (a3 || name.starts_with("910_93") || name.starts_with("910C")) return DeviceType::Ascend910_93;
  for (const std::string_view first : {"910A", "910B", "910ProA", "910ProB", "910PremiumA"}) {
    if (name == first) return DeviceType::Ascend910;
  }
  if (name.size() > 4 && name.starts_with("910B") && name[4] >= '0' && name[4] <= '9')
    return DeviceType::Ascend910b;
  if (name == "910" && has_ddr) return DeviceType::Ascend910;
  return DeviceType::AscendOther;
}

}  // namespace muster::agent::probe
