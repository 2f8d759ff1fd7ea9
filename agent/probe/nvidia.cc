#include "agent/probe/nvidia.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "agent/probe/nvidia_smi.h"

namespace muster::agent::probe {
namespace {

constexpr const char* kTool = "nvidia-smi";
constexpr const char* kFormat = "--format=csv,noheader,nounits";

}  // namespace

Found ask_nvidia(const Ask& ask) {
  Found found;
  const auto answers =
      ask({{kTool, {fmt::format("--query-gpu={}", kGpuFields), kFormat}},
           {kTool, {fmt::format("--query-compute-apps={}", kGpuAppFields), kFormat}}});
  const process::ToolAnswer &gpus = answers[0], &apps = answers[1];
  if (gpus.absent) return found;
  found.asked = true;
  GpuList list = parse_gpus(gpus.output);
  if (list.devices.empty()) {
    found.none = says_no_gpu(gpus.output);
    if (!found.none)
      found.findings.push_back(
          fmt::format("nvidia-smi --query-gpu gave no device: {}", why_not(gpus)));
    return found;
  }
  std::set<std::uint32_t> ids;
  for (Device& device : list.devices) {
    if (ids.insert(device.id).second) {
      found.devices.push_back(std::move(device));
    } else {
      found.findings.push_back(
          fmt::format("nvidia-smi names device {} twice; the first is taken", device.id));
    }
  }
  std::ranges::sort(found.devices, {}, &Device::id);
  for (const std::string& line : list.messages)
    found.findings.push_back(fmt::format("nvidia-smi says '{}'", line));
  if (!gpus.why.empty() && list.messages.empty())
    found.findings.push_back(fmt::format("the list of nvidia-smi may not be whole: {}", gpus.why));
  if (!apps.why.empty())
    found.findings.push_back(
        fmt::format("nvidia-smi --query-compute-apps gave no processes: {}", apps.why));
  for (GpuProcess& process : parse_gpu_processes(apps.output)) {
    const auto device = std::ranges::find(found.devices, process.gpu_uuid, &Device::uuid);
    if (device != found.devices.end()) device->occupants.push_back(std::move(process.occupant));
  }
  return found;
}

}  // namespace muster::agent::probe
