// posix_spawn with what muster needs of it. For agent and client: gRPC must not be forked without
// exec, so daemons only ever spawn.
// Every descriptor above 2 that is not named is closed in the child, the signal mask is emptied and
// every disposition is the default. Blocking for the moment of the exec; any thread. The caller
// reaps.
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
  std::string path;  // absolute, or found on PATH of the caller when it holds no '/'
  std::vector<std::string> argv;
  std::vector<std::string> env;  // NAME=value: the whole environment
  std::optional<std::string> cwd;
  OpenFile standard_in{.path = "/dev/null"};
  OpenFile standard_out{.path = "/dev/null", .flags = 01};
  std::optional<OpenFile> standard_err;  // none: where standard_out goes
  // a descriptor of ours instead of standard_out (a pipe's end)
  std::optional<int> out_fd;
  std::optional<int> err_fd;
  bool inherit_standard = false;  // leave 0, 1, 2 as they are
  bool new_session = false;       // setsid: a daemon of its own
};

// "executing '/x': No such file or directory".
Result<pid_t> spawn(const SpawnRequest& request);

// The caller's own environment as NAME=value.
std::vector<std::string> own_environment();

}  // namespace muster::process
