// Identifies a process: a pid plus its start time (/proc/PID/stat field 22), on one boot. Stateless
// functions that read /proc and never send signals. Any thread.
//
// A process that is gone is ErrorCode::NotFound.
#pragma once

#include <sys/types.h>

#include <compare>
#include <cstdint>
#include <string_view>

#include "common/base/error.h"
#include "common/base/ids.h"

namespace muster::process {

struct ProcessId {
  pid_t pid = 0;
  std::uint64_t start_time = 0;  // clock ticks since boot
  friend auto operator<=>(const ProcessId&, const ProcessId&) = default;
};

struct ProcStat {
  char state = 0;  // R S D Z T t X I
  pid_t parent = 0;
  pid_t group = 0;
  pid_t session = 0;
  std::uint64_t flags = 0;  // PF_*
  std::uint64_t start_time = 0;
  std::uint64_t rss_pages = 0;
  std::uint64_t env_start = 0;  // 0 when we may not read it, and at the moment of its exec
  std::uint64_t env_end = 0;
};

// Parses the text of /proc/PID/stat. The process name in it may contain blanks and brackets.
Result<ProcStat> parse_stat(std::string_view text);
Result<ProcStat> read_stat(pid_t pid);

Result<ProcessId> identify(pid_t pid);
Result<ProcessId> self();
// True if the process runs (a zombie does not) and has exactly this start time.
bool alive(const ProcessId& process);

// Reads /proc/sys/kernel/random/boot_id, without the newline.
Result<BootId> boot_id();

}  // namespace muster::process
