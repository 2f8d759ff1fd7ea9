// The agent's state directory: mode 0700, locked for the life of the process, and its identity,
// replaced durably (it must outlive power: a forgotten epoch or acknowledged index would let an
// older controller in). Owns the lock. One strand. Run directories are host.h's.
#pragma once

#include <cstdint>
#include <filesystem>

#include "common/base/error.h"
#include "common/base/ids.h"
#include "common/io/unique_fd.h"
#include "common/rundir/layout.h"

namespace muster::agent {

struct Identity {
  InstanceId instance;
  ClusterId cluster;  // empty: never joined one
  Epoch highest_epoch;
  JournalIndex acked;
  friend bool operator==(const Identity&, const Identity&) = default;
};

// NotFound: no agent has one there. DataLoss: it is damaged. Unsupported: a newer agent's.
Result<Identity> read_identity(const rundir::AgentLayout& layout);

class StateDir {
 public:
  // Makes the directory and a new identity when they are not there. Conflict: a second agent on
  // this state directory. On a disk that is read-only it opens what is complete.
  static Result<StateDir> open(const std::filesystem::path& path);

  [[nodiscard]] const rundir::AgentLayout& layout() const { return layout_; }
  [[nodiscard]] const Identity& identity() const { return identity_; }
  // Synced when it returns. On an error the old one stays, on disk and here.
  Result<void> store(const Identity& identity);

 private:
  StateDir(rundir::AgentLayout layout, io::UniqueFd lock)
      : layout_(std::move(layout)), lock_(std::move(lock)) {}
  Result<void> load_or_make_identity();

  rundir::AgentLayout layout_;
  io::UniqueFd lock_;
  Identity identity_;
};

// 0, or the errno with which the disk of the state directory refuses a small new file. Blocking;
// any thread.
int write_error(const rundir::AgentLayout& layout);

}  // namespace muster::agent
