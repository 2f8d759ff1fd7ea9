// Sets of processors in the kernel's text form ("0-15,64-79": cpulist, Cpus_allowed_list), and the
// set of the calling thread. Stateless functions on plain values. Any thread.
//
// The numbers ascend, and each occurs once.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"

namespace muster::process {

inline constexpr unsigned kCpusMost = 8192;  // a kernel's NR_CPUS

using CpuList = std::vector<unsigned>;

// Accepts blanks around the list. Empty text is the empty set. Returns nothing if the text is no
// list, or has a number of kCpusMost or more.
std::optional<CpuList> parse_cpu_list(std::string_view text);
std::string cpu_list_text(const CpuList& cpus);

// Returns the processors that this thread may run on.
Result<CpuList> allowed_cpus();

// From now on this thread, and what it forks and executes, runs on these processors alone. Returns
// 0 or errno: EINVAL where this thread may use none of them.
int run_on_cpus(const CpuList& cpus);

}  // namespace muster::process
