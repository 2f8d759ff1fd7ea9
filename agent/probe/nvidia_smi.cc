#include "agent/probe/nvidia_smi.h"

#include <algorithm>
#include <functional>

#include "agent/probe/text.h"
#include "common/engine/ranktable/words.h"

namespace muster::agent::probe {
namespace {

constexpr std::size_t kMessagesMax = 8;

// Finds columns by name.
class Columns {
 public:
  explicit Columns(std::string_view asked) : names_(split(asked, ',')) {}

  // "index, uuid, memory.total [MiB]": recognizes a line of names.
  bool header(const std::vector<std::string_view>& cells) {
    std::vector<std::string_view> names;
    for (const std::string_view cell : cells)
      names.push_back(ranktable::trimmed(cell.substr(0, cell.find('['))));
    if (names.empty() || names.front() != names_.front()) return false;
    names_ = std::move(names);
    return true;
  }
  [[nodiscard]] std::size_t size() const { return names_.size(); }
  [[nodiscard]] std::string_view cell(const std::vector<std::string_view>& cells,
                                      std::string_view name) const {
    const auto at = static_cast<std::size_t>(std::ranges::find(names_, name) - names_.begin());
    return at < cells.size() && at < names_.size() ? cells[at] : std::string_view{};
  }

 private:
  std::vector<std::string_view> names_;
};

// "143771" or "143771 MiB"; "[N/A]" and similar values are no number.
std::optional<std::uint64_t> number(std::string_view cell) {
  const auto words = words_of(cell, 3);
  if (words.empty() || words.size() > 2 || (words.size() == 2 && words[1] != "MiB"))
    return std::nullopt;
  return parse_u64(words[0]);
}

// Passes rows to `take` and other lines to `messages`.
void rows(std::string_view csv, Columns columns,
          const std::function<bool(const Columns&, const std::vector<std::string_view>&)>& take,
          std::vector<std::string>* messages) {
  std::string_view line;
  while (next_line(csv, line)) {
    if (line.empty()) continue;
    const auto cells = split(line, ',', 16);
    if (columns.header(cells)) continue;
    if (cells.size() == columns.size() && take(columns, cells)) continue;
    if (messages != nullptr && messages->size() < kMessagesMax)
      messages->push_back(clean(line, 160));
  }
}

Health health_of(const Columns& columns, const std::vector<std::string_view>& cells) {
  Health health;
  for (const std::string_view gone : {"GPU is lost", "GPU requires reset"}) {
    for (const std::string_view cell : cells) {
      if (cell.find(gone) == std::string_view::npos) continue;
      health.add(HealthLevel::Bad, std::string("nvidia-smi says '") + std::string(gone) + "'");
      return health;
    }
  }
  if (std::ranges::any_of(cells, [](std::string_view cell) {
        return cell == "[Unknown Error]" || cell == "ERR!";
      })) {
    health.add(HealthLevel::Warning, "nvidia-smi cannot read all of it");
  }
  if (const auto errors = number(columns.cell(cells, "ecc.errors.uncorrected.volatile.total"));
      errors && *errors > 0) {
    health.add(HealthLevel::Warning,
               std::to_string(*errors) + " uncorrected ECC errors since its driver was loaded");
  }
  return health;
}

}  // namespace

GpuList parse_gpus(std::string_view csv) {
  GpuList list;
  rows(
      csv, Columns(kGpuFields),
      [&](const Columns& columns, const std::vector<std::string_view>& cells) {
        const auto index = ranktable::parse_number(columns.cell(cells, "index"), 1023);
        if (!index || list.devices.size() >= kDevicesMax) return false;
        Device device{.id = *index, .physical_id = *index, .type = DeviceType::Nvidia};
        device.card = *index;
        device.uuid = clean(columns.cell(cells, "uuid"), 60);
        device.name = clean(columns.cell(cells, "name"), 60);
        device.bus_id = pci_address(columns.cell(cells, "pci.bus_id")).value_or("");
        device.memory_total_mib = number(columns.cell(cells, "memory.total"));
        device.memory_used_mib = number(columns.cell(cells, "memory.used"));
        device.health = health_of(columns, cells);
        list.devices.push_back(std::move(device));
        return true;
      },
      &list.messages);
  return list;
}

std::vector<GpuProcess> parse_gpu_processes(std::string_view csv) {
  std::vector<GpuProcess> processes;
  rows(
      csv, Columns(kGpuAppFields),
      [&](const Columns& columns, const std::vector<std::string_view>& cells) {
        const auto pid = ranktable::parse_number(columns.cell(cells, "pid"), 0x7FFFFFFF);
        if (!pid || processes.size() >= kOccupantsMax) return false;
        GpuProcess process{.gpu_uuid = clean(columns.cell(cells, "gpu_uuid"), 60), .occupant = {}};
        process.occupant.pid = static_cast<pid_t>(*pid);
        const std::string_view name = columns.cell(cells, "process_name");
        // "[Not Found]", "[Insufficient Permissions]"
        if (!name.starts_with('[')) process.occupant.name = clean(name, 60);
        process.occupant.memory_mib = number(columns.cell(cells, "used_memory"));
        processes.push_back(std::move(process));
        return true;
      },
      nullptr);
  return processes;
}

bool says_no_gpu(std::string_view output) {
  return output.find("No devices were found") != std::string_view::npos;
}

}  // namespace muster::agent::probe
