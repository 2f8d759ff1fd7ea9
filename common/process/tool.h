// Runs somebody else's programs (npu-smi, hccn_tool, nvidia-smi) and takes what they print: an
// argument list and no shell, bounds on time, bytes and how many run at once, a session of its own
// for each, whose process group is killed at the end of it, so that neither a stuck program nor
// what it left behind stays. A program that the kernel holds (a hanging driver) outlives even
// SIGKILL: it is left behind, remembered, and not started again until it is gone. One owner, any
// one thread at a time; run() blocks for `total` and a moment at most. Standard input and error are
// /dev/null.
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
  std::string program;  // absolute, or found on PATH of the caller when it holds no '/'
  std::vector<std::string> args;
};

struct ToolLimits {
  std::chrono::milliseconds each{5000};
  // all of one run(); what has not been started by then is not
  std::chrono::milliseconds total{20'000};
  std::size_t parallel = 4;
  std::size_t bytes = 256 << 10;  // of one's standard output
  // readable: nobody waits for answers any more, all are ended at once
  int cancel_fd = -1;
  // While one runs, every `observe_interval`: its process and what it has printed so far. On the
  // calling
  // thread, and must not block.
  std::function<void(pid_t, std::string_view)> observe{};
  std::chrono::milliseconds observe_interval{1000};
};

struct ToolAnswer {
  std::string output;  // also of one that failed: what there was until then
  // it is no answer: "it did not end within 5000 ms"; empty = ended with status 0
  std::string why;
  bool absent = false;
  std::optional<int> status;  // it ended by itself
};

class ToolRunner {
 public:
  // Answers in the order of the requests. `env`: NAME=value, the whole environment of each.
  std::vector<ToolAnswer> run(const std::vector<ToolRequest>& requests,
                              const std::vector<std::string>& env, const ToolLimits& limits);
  // Programs that do not die; looked at again.
  std::size_t stuck();

 private:
  struct Stuck {
    pid_t pid;
    std::string program;
  };
  void reap_stuck();
  std::vector<Stuck> stuck_;
};

// The caller's environment without its language, so that messages can be read; `path` in place of
// PATH where it is given.
std::vector<std::string> tool_environment(const std::optional<std::string>& path = {});

// The first executable regular file of that name in the absolute folders of `path` ("/a:/b").
std::optional<std::string> find_program(std::string_view name, std::string_view path);

}  // namespace muster::process
