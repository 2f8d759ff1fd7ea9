// A ScriptRun runs a command with stand_in.h's programs as its launchers; everything else that the
// command does is real. `muster import` creates one; it owns a temporary directory and the
// command's processes, and removes both. It is used on one thread; another thread may call kill()
// while wait() waits.
//
// The temporary directory has mode 0700, because its records contain the script's environment.
//
// The command has a session of its own, no input, and both of its outputs on our stderr. Processes
// that it leaves in the background get a moment, because a launcher may be among them. Then they
// are killed, in whatever session they are: this process is the subreaper of all processes that it
// has started.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "client/import/captured.h"
#include "common/base/error.h"

namespace muster::import {

struct HowEnded {
  int code = 0;  // -1 when signal is set
  int signal = 0;
  [[nodiscard]] bool well() const { return code == 0 && signal == 0; }
};

class ScriptRun {
 public:
  // Errors: InvalidArgument (no such command), Io.
  static Result<ScriptRun> start(const std::vector<std::string>& command);
  ScriptRun(ScriptRun&& other) noexcept;
  ScriptRun& operator=(ScriptRun&&) = delete;
  ~ScriptRun();

  // Waits until the command itself has ended. The command is not reaped, so that its pid stays its
  // own.
  void wait() const;
  // Kills the command and all of its process group.
  void kill() const;
  // Reaps the command and waits up to `most` for the processes that it left running; then kills
  // them. Returns true if it killed any.
  bool end_others(std::chrono::milliseconds most);

  [[nodiscard]] HowEnded ended() const { return ended_; }
  // The environment that the script got, without muster's own additions.
  [[nodiscard]] const Variables& before() const { return before_; }
  // Errors: Io, DataLoss.
  [[nodiscard]] Result<std::vector<Captured>> calls() const;
  [[nodiscard]] std::filesystem::path programs() const;

 private:
  ScriptRun() = default;
  std::filesystem::path directory_;
  Variables before_;
  pid_t pid_ = 0;  // 0: no command, or it is reaped
  HowEnded ended_;
};

}  // namespace muster::import
