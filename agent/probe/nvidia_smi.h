// What nvidia-smi prints for --query-gpu and --query-compute-apps as CSV, with or without the line
// of names and the units. Pure; any bytes; linear. Its manual says that the text may change between
// drivers: columns are found by their names where these are printed, else they are those asked for
// below. A lost card answers "[GPU is lost]" or "[GPU requires reset]" in its fields, or has only a
// line "Unable to determine the device handle for GPU 0000:0B:00.0: ...".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "agent/probe/device.h"

namespace muster::agent::probe {

inline constexpr std::string_view kGpuFields =
    "index,uuid,name,pci.bus_id,memory.total,memory.used,ecc.errors.uncorrected.volatile.total";
inline constexpr std::string_view kGpuAppFields = "gpu_uuid,pid,process_name,used_memory";

struct GpuList {
  std::vector<Device> devices;        // occupants not yet in it
  std::vector<std::string> messages;  // lines that are no row; 8 at most
};
GpuList parse_gpus(std::string_view csv);

struct GpuProcess {
  std::string gpu_uuid;
  Occupant occupant;
};
std::vector<GpuProcess> parse_gpu_processes(std::string_view csv);

// "No devices were found".
bool says_no_gpu(std::string_view output);

}  // namespace muster::agent::probe
