// The processes of a node's script that say which rank of a training they are (RANK_ID or RANK in
// their environment), each told once: of a rank and all that it has started with its environment,
// the outermost process. Ranks of the launcher shim have their logs, and are none of these.
//
// Looks only below this process, by the kernel's lists of children, and not below a rank: what
// ranks start costs nothing. Never asks a file system of the job's, which may hang: where a rank's
// output goes is read from /proc as a name, and nothing is opened.
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
  std::string log;  // absolute path of the file that its stdout goes to; empty: none of its own
};

class ScriptRanks {
 public:
  static constexpr Duration kLivesAtLeast = std::chrono::milliseconds(50);
  static constexpr std::size_t kReportedMost = 1024;  // then no look finds any more
  static constexpr std::size_t kScannedMost = 4096;   // processes, in one look

  // `logs`: the run's own, which nobody need follow. `scripts_own`: the rank that the script's own
  // environment names, which all that it starts has too.
  ScriptRanks(const std::filesystem::path& logs, std::optional<std::uint32_t> scripts_own);

  // Those that were not told before, and were started before `until`: what a script does for a rank
  // before it starts it (mkdir, env > env.log) has the rank's environment as well.
  std::vector<ScriptRank> scan(BootTime until);
  [[nodiscard]] bool full() const { return reported_.size() >= kReportedMost; }

 private:
  [[nodiscard]] std::string log_of(pid_t pid) const;
  std::string logs_;  // with a slash behind it
  const std::optional<std::uint32_t> scripts_own_;
  std::set<process::ProcessId> reported_;
};

}  // namespace muster::worker
