// Parses what nvidia-smi prints for --query-gpu and --query-compute-apps as CSV, with or without
// the line of names and the units. Pure; accepts any bytes; linear.
//
// The manual warns that the text may change between drivers. Columns are therefore found by their
// names if these are printed, else they have the order of the query below. A lost card answers
// "[GPU is lost]" or "[GPU requires reset]" in its fields. It may also have only a line "Unable to
// determine the device handle for GPU 0000:0B:00.0: ...".
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
  std::vector<Device> devices;        // without occupants
  std::vector<std::string> messages;  // lines that are no row; at most 8
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
