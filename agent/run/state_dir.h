// StateDir is the agent's state directory: mode 0700, locked as long as the process runs, with the
// agent's identity. main() opens it, the Agent takes it over, and it owns the lock. One thread at a
// time uses it: first the agent's loop, later the agent's disk loop.
//
// The identity is replaced durably. Run directories belong to host.h.
#pragma once

#include <cstdint>
#include <filesystem>

#include "agent/core/identity.h"
#include "common/base/error.h"
#include "common/base/ids.h"
#include "common/io/unique_fd.h"
#include "common/rundir/layout.h"

namespace muster::agent {

// NotFound: no agent has an identity there. DataLoss: it is damaged. Unsupported: it is a newer
// agent's.
Result<Identity> read_identity(const rundir::AgentLayout& layout);

class StateDir {
 public:
  // Makes the directory and a new identity if they do not exist. Conflict: a second agent on this
  // state directory. On a read-only disk it opens a complete state directory.
  static Result<StateDir> open(const std::filesystem::path& path);

  [[nodiscard]] const rundir::AgentLayout& layout() const { return layout_; }
  [[nodiscard]] const Identity& identity() const { return identity_; }
  // The identity is synced when this returns. On an error the old one stays, on disk and here.
  Result<void> store(const Identity& identity);

 private:
  StateDir(rundir::AgentLayout layout, io::UniqueFd lock)
      : layout_(std::move(layout)), lock_(std::move(lock)) {}
  Result<void> load_or_make_identity();

  rundir::AgentLayout layout_;
  io::UniqueFd lock_;
  Identity identity_;
};

// Returns 0, or the errno with which the state directory's disk refuses a small new file. Blocking;
// may run on any thread.
int write_error(const rundir::AgentLayout& layout);

}  // namespace muster::agent
