// What the shim tells the worker of its launch, for a script ends with the status of what is behind
// a pipe. The lines are in worker/launch_report.h; each is one write to a file that several
// launches may append to at a time.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/io/unique_fd.h"
#include "worker/shim/gang.h"

namespace muster::shim {

// What a launch is. A path with control bytes in it is not told.
struct Launched {
  std::uint32_t first_rank = 0;
  std::size_t ranks = 0;
  // absolute: where it would have saved, had it not been redirected; empty: nowhere
  std::string saves;
  bool weights_alone = false;                               // and no optimizer
  std::vector<std::pair<std::uint32_t, std::string>> logs;  // of its ranks
};

class Report {
 public:
  // Tells that this process launches, and which launches before it are gone without an end
  // (killed): the script has tried again. Without a path: tells nothing.
  explicit Report(const std::string& path, const Launched& launched = {});
  void end(const Ended& ended) const;

 private:
  void add(const std::string& line) const;
  io::UniqueFd fd_;
};

}  // namespace muster::shim
