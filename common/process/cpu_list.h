// Sets of processors as the kernel writes them ("0-15,64-79": cpulist, Cpus_allowed_list), and a
// thread's own. Numbers ascend, each once. Any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"

namespace muster::process {

inline constexpr unsigned kCpusMost = 8192;  // a kernel's NR_CPUS

using CpuList = std::vector<unsigned>;

// Blanks around it are taken. Nothing: it is none, or has a number of kCpusMost or more. Empty text
// is the empty set.
std::optional<CpuList> parse_cpu_list(std::string_view text);
std::string cpu_list_text(const CpuList& cpus);

// Where this thread may run.
Result<CpuList> allowed_cpus();

// From here on this thread, and what it forks and executes, runs on these alone. 0, or errno:
// EINVAL where none of them may be had.
int run_on_cpus(const CpuList& cpus);

}  // namespace muster::process
