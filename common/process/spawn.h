// Starts a process with posix_spawn and the settings that muster needs. Stateless functions; the
// caller owns the child and reaps it. Any thread; blocks until the exec.
//
// A process with gRPC must not fork without exec, so agent and client only use spawn. The child
// closes every descriptor above 2, has an empty signal mask, and has the default action for every
// signal.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "common/base/error.h"

namespace muster::process {

struct OpenFile {
  std::string path;
  int flags = 0;  // O_WRONLY | O_CREAT | O_APPEND ...
  unsigned mode = 0600;
};

struct SpawnRequest {
  std::string path;  // absolute, or searched on the caller's PATH when it has no '/'
  std::vector<std::string> argv;
  std::vector<std::string> env;  // NAME=value: the whole environment
  std::optional<std::string> cwd;
  OpenFile standard_in{.path = "/dev/null"};
  OpenFile standard_out{.path = "/dev/null", .flags = 01};
  std::optional<OpenFile> standard_err;  // none: same as standard_out
  // a descriptor of this process in place of standard_in, standard_out (a pipe's end)
  std::optional<int> in_fd;
  std::optional<int> out_fd;
  std::optional<int> err_fd;
  bool inherit_standard = false;  // leave 0, 1, 2 as they are
  bool new_session = false;       // setsid: the child is a daemon of its own
};

// An error has the form "executing '/x': No such file or directory".
Result<pid_t> spawn(const SpawnRequest& request);

// Returns the caller's own environment as NAME=value.
std::vector<std::string> own_environment();

}  // namespace muster::process
