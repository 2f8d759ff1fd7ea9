#include "agent/probe/probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "agent/probe/ascend.h"
#include "agent/probe/numa.h"
#include "agent/probe/nvidia.h"
#include "agent/probe/occupants.h"
#include "common/engine/ranktable/hccn.h"
#include "common/io/file.h"

namespace muster::agent::probe {
namespace {

using Clock = std::chrono::steady_clock;

std::vector<Device> cpu_slots(std::uint32_t count) {
  std::vector<Device> devices(count);
  for (std::uint32_t id = 0; id < count; ++id) devices[id].id = devices[id].physical_id = id;
  return devices;
}

// Runs real programs from the given path within the remaining time.
class Tools {
 public:
  Tools(process::ToolRunner& runner, const ProbeOptions& options)
      : runner_(runner),
        options_(options),
        path_(options.path.empty() ? tool_path() : options.path),
        env_(process::tool_environment(path_)),
        end_(Clock::now() + options.total) {}

  std::vector<process::ToolAnswer> ask(const std::vector<process::ToolRequest>& requests) {
    std::vector<process::ToolAnswer> answers(requests.size());
    std::vector<process::ToolRequest> there;
    std::vector<std::size_t> whose;
    for (std::size_t at = 0; at < requests.size(); ++at) {
      auto file = process::find_program(requests[at].program, path_);
      if (file) {
        there.push_back({.program = std::move(*file), .args = requests[at].args});
        whose.push_back(at);
      } else {
        answers[at].absent = true;
        answers[at].why = fmt::format("there is no {} on PATH", requests[at].program);
      }
    }
    const auto left = std::max(std::chrono::ceil<std::chrono::milliseconds>(end_ - Clock::now()),
                               std::chrono::milliseconds(0));
    auto ran = runner_.run(there, env_,
                           {.each = options_.each,
                            .total = left,
                            .parallel = options_.parallel,
                            .cancel_fd = options_.cancel_fd});
    for (std::size_t at = 0; at < ran.size(); ++at) answers[whose[at]] = std::move(ran[at]);
    return answers;
  }

 private:
  process::ToolRunner& runner_;
  const ProbeOptions& options_;
  std::string path_;
  std::vector<std::string> env_;
  Clock::time_point end_;
};

void take(Probed& probed, Found& found) {
  probed.devices = std::move(found.devices);
  std::ranges::move(found.findings, std::back_inserter(probed.findings));
}

}  // namespace

std::string tool_path() {
  const char* own = std::getenv("PATH");
  return fmt::format("{}{}{}", own == nullptr ? "" : own, own == nullptr ? "" : ":", kVendorPlaces);
}

Probed probe_devices(process::ToolRunner& tools, const ProbeOptions& options) {
  Probed probed;
  if (options.own) options.own->begin_probe();
  if (options.fixed) {
    probed.devices = *options.fixed;
  } else if (options.slots) {
    probed.devices = cpu_slots(*options.slots);
    return probed;
  } else {
    Tools asked(tools, options);
    const Ask ask = [&](const std::vector<process::ToolRequest>& requests) {
      return asked.ask(requests);
    };
    const auto conf = io::read_file(options.hccn_conf, ranktable::kConfBytesMax);
    Found ascend = ask_ascend(ask, {.hccn_conf = conf ? *conf : std::string()});
    Found nvidia = ask_nvidia(ask);
    const bool failed = (ascend.asked && !ascend.none) || (nvidia.asked && !nvidia.none);
    const bool both = !ascend.devices.empty() && !nvidia.devices.empty();
    take(probed, ascend);
    if (both) {
      probed.findings.push_back(fmt::format(
          "{} NVIDIA devices are left out: a node's devices are of one maker, and npu-smi shows {}",
          nvidia.devices.size(), probed.devices.size()));
      nvidia.devices.clear();
    }
    if (probed.devices.empty()) {
      take(probed, nvidia);
    } else {
      std::ranges::move(nvidia.findings, std::back_inserter(probed.findings));
    }
    if (probed.devices.empty() && !failed) probed.devices = cpu_slots(options.cores);
  }
  const bool sees_all = options.sees_all ? *options.sees_all : sees_all_processes();
  const auto ours = [&](pid_t pid) { return options.own && options.own->holds(pid); };
  for (Device& device : probed.devices) {
    if (!device.numa_node) device.numa_node = numa_node_of(options.sys, device.bus_id);
    keep_strangers(device.occupants, ours, options.own && options.own->on_device(device.id),
                   sees_all);
  }
  return probed;
}

}  // namespace muster::agent::probe
