// Runs a command whose launchers are stand_in.h's, for real: what else it does, it does. Owns a
// temporary directory (mode 0700: its records hold the script's environment), gone with it, and the
// command's processes. One thread; kill() may be called from another while wait() waits.
//
// The command has a session of its own, no input, and both of its outputs on our stderr. What it
// leaves running in the background is given a moment, for a launcher may be among it, and is killed
// then, in whatever session: this process is the subreaper of all it has started.
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

  // Until the command itself has ended; it is not reaped, so that its number stays its own.
  void wait() const;
  // It and all of its group.
  void kill() const;
  // Reaps it, and waits up to `most` for what it has left running; that is killed then. True:
  // something was.
  bool end_others(std::chrono::milliseconds most);

  [[nodiscard]] HowEnded ended() const { return ended_; }
  // What the script was given, our own additions left out.
  [[nodiscard]] const Variables& before() const { return before_; }
  // Errors: Io, DataLoss.
  [[nodiscard]] Result<std::vector<Captured>> calls() const;
  [[nodiscard]] std::filesystem::path programs() const;

 private:
  ScriptRun() = default;
  std::filesystem::path directory_;
  Variables before_;
  pid_t pid_ = 0;  // 0: none, or reaped
  HowEnded ended_;
};

}  // namespace muster::import
