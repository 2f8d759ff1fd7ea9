// The copy of a file into which a node's script sends the output of one rank of the training, in
// the run directory: from there it is a log beside the ranks' as any other, and what happens to it
// there (holes, removal) never happens to the user's own file. The copy grows with the file; a file
// that was truncated or replaced makes the copy begin anew, which is then told as that of a rank's
// own log.
//
// Nothing is remembered but the file and the place in it where the copy begins: the length of the
// copy says how far it has come, whenever an agent was killed. A file of a container's own is
// reached through the root of its worker. It goes with that: it is held open from the first look
// on, and what was written after the last one is read then.
// The path is the job's word: opened with the rights of the run's user, the last step never through
// a symbolic link (of a path in a container, no step), and read only where it is a regular file
// outside the run directory. Every call may hang with the file's file system: one thread at a time,
// and never the watch's.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/watch/cursor_file.h"
#include "common/base/error.h"
#include "common/io/unique_fd.h"
#include "common/process/identity.h"
#include "common/rundir/layout.h"

namespace muster::agent {

struct ScriptLog {
  std::string name;            // of the log beside the ranks' that it becomes
  std::uint32_t rank = 0;      // of the training
  process::ProcessId process;  // that was seen writing it
  std::string path;
  // its beginning, below which it is in a container, where links lead elsewhere; empty: none
  std::string mount{};
  // below whose root the path is; pid 0: the node's
  process::ProcessId root{};
  // what it returns holds them, on the calling thread alone; none: the agent's own
  std::function<std::shared_ptr<void>()> rights{};
};

class ScriptLogCopy {
 public:
  // of one file before the others of its file system have their turn
  static constexpr std::uint64_t kRoundBytes = 8 << 20;
  using Open = std::function<int(const char* path, int flags)>;

  // `open`: open(2). Tests set it.
  ScriptLogCopy(ScriptLog log, const std::filesystem::path& run_dir, Open open);

  struct Round {
    bool moved = false;        // the copy is another one than before
    bool more = false;         // than fits into one round
    std::uint64_t device = 0;  // st_dev of the file; 0: it is not there
    std::optional<Error> trouble;
  };
  // `last`: nobody writes it any more. When all of it is there, that is remembered, over lives of
  // the agent as well: whatever is in the file's place later is somebody else's.
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
  // its segment: where in which file the copy begins; its parsed: the copy is whole
  std::optional<CursorFile> source_;
  io::UniqueFd kept_;  // the file at the last look, of one below another root
  io::UniqueFd copy_;
  std::uint64_t copied_ = 0;
  std::vector<char> buffer_;
};

}  // namespace muster::agent
