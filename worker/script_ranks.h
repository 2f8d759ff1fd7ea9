// ScriptRanks finds the processes of a node's script whose environment names a training rank
// (RANK_ID or RANK). Supervisor owns it. It runs on the worker's one thread.
//
// It reports each process once. Of a rank and the processes that inherit its environment, it
// reports the outermost. Ranks of the launcher shim have their own logs and are not included.
//
// It scans only below this process, through the kernel's lists of children, and never below a rank,
// so that the descendants of ranks cost nothing. It never calls a file system of the job, which may
// hang: it reads the name of a rank's output from /proc and opens no file.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/time.h"
#include "common/process/identity.h"

namespace muster::worker {

struct ScriptRank {
  std::uint32_t rank = 0;
  process::ProcessId process;
  std::string log;  // absolute path of the file of its stdout; empty: no file of its own
};

class ScriptRanks {
 public:
  static constexpr Duration kLivesAtLeast = std::chrono::milliseconds(50);
  static constexpr std::size_t kReportedMost = 1024;  // after these, a scan finds no more
  static constexpr std::size_t kScannedMost = 4096;   // processes in one scan

  // `logs` is the run's own log directory; logs in it need not be followed. `scripts_own` is the
  // rank in the script's own environment, which all its children inherit.
  ScriptRanks(const std::filesystem::path& logs, std::optional<std::uint32_t> scripts_own);

  // Returns the processes that were not reported before and were started before `until`. The
  // commands that a script runs for a rank before the rank starts (mkdir, env > env.log) have the
  // rank's environment, too.
  std::vector<ScriptRank> scan(BootTime until);
  [[nodiscard]] bool full() const { return reported_.size() >= kReportedMost; }

 private:
  [[nodiscard]] std::string log_of(pid_t pid) const;
  std::string logs_;  // ends with a slash
  const std::optional<std::uint32_t> scripts_own_;
  std::set<process::ProcessId> reported_;
};

}  // namespace muster::worker
