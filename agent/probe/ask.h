// Ask is the function through which a source of devices (ascend.h, nvidia.h) runs its tools.
// probe_devices() makes it for one probe, on the probe's thread.
//
// It takes names and arguments, and returns the answers in the same order. The probe runs real
// programs; tests answer with recorded text.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "agent/probe/device.h"
#include "common/process/tool.h"

namespace muster::agent::probe {

using Ask =
    std::function<std::vector<process::ToolAnswer>(const std::vector<process::ToolRequest>&)>;

// Returns why there is no answer: how the tool ended, and what it printed if it ended by itself.
std::string why_not(const process::ToolAnswer& answer);

// Combines calls that failed with the same reason into one sentence: "hccn_tool -ip -g gave nothing
// for devices 3,5: it did not end within 5000 ms".
class Failures {
 public:
  explicit Failures(std::string what) : what_(std::move(what)) {}
  void add(std::uint32_t device, std::string why);
  void into(std::vector<std::string>& findings) const;

 private:
  struct Alike {
    std::string why;
    std::vector<std::uint32_t> devices;
  };
  std::string what_;
  std::vector<Alike> alike_;
};

}  // namespace muster::agent::probe
