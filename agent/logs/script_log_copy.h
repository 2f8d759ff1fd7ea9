// ScriptLogCopy copies the file into which a node's script sends the output of one training rank
// into the run directory. ScriptLogs (script_logs.h) and the running scan share it. copy() runs on
// one scan thread at a time and never on the watch thread.
//
// Every call may hang with the file's file system.
//
// The copy is then an auxiliary log like any other. Holes and removal affect only the copy and
// never the user's own file. The copy grows with the file. If the file was truncated or replaced,
// the copy starts anew, and this is reported like the truncation of a rank's own log.
//
// Only two things are stored: which file is copied, and the offset in it at which the copy begins.
// The length of the copy shows how much is copied, whenever an agent was killed.
//
// A file inside a container is reached through the root directory of the container's worker, and
// disappears with the container. The copy therefore keeps it open from the first scan on, and reads
// later bytes through that descriptor.
//
// The job chooses the path. It is opened with the rights of the run's user. The last part is never
// followed as a symbolic link, and for a path in a container no part is. Only a regular file
// outside the run directory is read.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/logs/cursor_file.h"
#include "agent/logs/logs_dir.h"
#include "common/base/error.h"
#include "common/io/unique_fd.h"
#include "common/process/identity.h"
#include "common/rundir/layout.h"

namespace muster::agent {

struct ScriptLog {
  std::string name;            // name of the auxiliary log that it becomes
  std::uint32_t rank = 0;      // of the training
  process::ProcessId process;  // the process that was seen writing it
  std::string path;
  // Not empty: the beginning of the path that is a mount of a container. Links below it lead
  // elsewhere, so they are not followed.
  std::string mount{};
  // The path is below the root directory of this process; pid 0: below that of the node.
  process::ProcessId root{};
  // The returned object holds the user's rights, on the calling thread only. Empty: the agent's own
  // rights.
  std::function<std::shared_ptr<void>()> rights{};
};

class ScriptLogCopy {
 public:
  // Bytes of one file in one round, so that others of its file system get their turn.
  static constexpr std::uint64_t kRoundBytes = 8 << 20;
  using Open = std::function<int(const char* path, int flags)>;

  // `open` replaces open(2) in tests. `logs` is the run's directory of logs. Null: it is opened for
  // this copy alone.
  ScriptLogCopy(ScriptLog log, const std::filesystem::path& run_dir, Open open,
                std::shared_ptr<LogsDir> logs = {});

  struct Round {
    bool moved = false;        // the copy has changed
    bool more = false;         // more bytes are left than one round takes
    std::uint64_t device = 0;  // st_dev of the file; 0: the file does not exist
    std::optional<Error> trouble;
  };
  // `last` means that no process writes the file any more. When all of it is copied, that is
  // stored, also for later incarnations of the agent: a file that has this path later is another
  // file.
  Round copy(bool last);
  [[nodiscard]] const std::string& path() const { return log_.path; }

 private:
  Result<void> open_copy();
  io::UniqueFd open_file(struct stat& info, Round& round);
  io::UniqueFd open_inside();
  [[nodiscard]] std::uint64_t first_byte(int fd, const struct stat& info) const;
  Result<bool> continues(int fd, const struct stat& info) const;
  Result<void> begin(std::uint64_t base, std::uint64_t inode);
  Result<void> take(int fd, Round& round);

  const ScriptLog log_;
  const rundir::RunLayout run_;
  const Open open_;
  const std::shared_ptr<LogsDir> logs_;
  // Its segment: which file, and the offset at which the copy begins. Its parsed: the copy is
  // complete.
  std::optional<CursorFile> source_;
  io::UniqueFd kept_;  // the file at the last scan, if it is below another root
  io::UniqueFd copy_;
  std::uint64_t copied_ = 0;
  std::vector<char> buffer_;
};

}  // namespace muster::agent
