// Runs programs of other vendors (npu-smi, hccn_tool, nvidia-smi) and returns what they print. Each
// caller owns its own ToolRunner, such as the agent's prober or the client's ranktable command. It
// is used by one thread at a time; run() blocks for `total` and a moment at most.
//
// A program gets an argument list, without a shell. There are bounds on time, on bytes and on the
// number that run at once. Standard input and error are /dev/null.
//
// Each program runs in a session of its own. The runner kills its process group at the end, so that
// neither a stuck program nor its children stay. A program that the kernel keeps (a hanging driver)
// survives even SIGKILL. The runner leaves it behind, remembers it, and does not start that program
// again until it is gone.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::process {

struct ToolRequest {
  std::string program;  // absolute, or searched on the caller's PATH when it has no '/'
  std::vector<std::string> args;
};

struct ToolLimits {
  std::chrono::milliseconds each{5000};
  // for all of one run(); what has not been started by then is not started
  std::chrono::milliseconds total{20'000};
  std::size_t parallel = 4;
  std::size_t bytes = 256 << 10;  // of one program's standard output
  // when readable, nobody waits for answers any more, and all programs are ended at once
  int cancel_fd = -1;
  // Called every `observe_interval` while a program runs, with its process and its output so far.
  // It runs on the calling thread and must not block.
  std::function<void(pid_t, std::string_view)> observe{};
  std::chrono::milliseconds observe_interval{1000};
};

struct ToolAnswer {
  std::string output;  // also of a failed program: what it printed until then
  // why there is no answer: "it did not end within 5000 ms"; empty = ended with status 0
  std::string why;
  bool absent = false;
  std::optional<int> status;  // set if it ended by itself
};

class ToolRunner {
 public:
  // The answers are in the order of the requests. `env` is NAME=value, the whole environment of
  // each program.
  std::vector<ToolAnswer> run(const std::vector<ToolRequest>& requests,
                              const std::vector<std::string>& env, const ToolLimits& limits);
  // Checks again, and returns the number of programs that do not die.
  std::size_t stuck();

 private:
  struct Stuck {
    pid_t pid;
    std::string program;
  };
  void reap_stuck();
  std::vector<Stuck> stuck_;
};

// Returns the caller's environment without its language, so that messages can be read. `path`
// replaces PATH if it is given.
std::vector<std::string> tool_environment(const std::optional<std::string>& path = {});

// Finds the first executable regular file of that name in the absolute directories of `path`
// ("/a:/b").
std::optional<std::string> find_program(std::string_view name, std::string_view path);

}  // namespace muster::process
