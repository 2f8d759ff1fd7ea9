// Report writes the shim's report of its launch for the worker. run_shim() makes one for each
// launch, on the shim's one thread.
//
// The worker needs it because a script may end with the status of a program after a pipe. The lines
// are in worker/launch_report.h. Each report is one write to a file to which several launches may
// append at the same time.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/io/unique_fd.h"
#include "worker/shim/gang.h"

namespace muster::shim {

// What a launch reports at its start. A path with control bytes is left out.
struct Launched {
  std::uint32_t first_rank = 0;
  std::size_t ranks = 0;
  // Absolute: where it would have saved, if muster had not redirected it. Empty: nowhere.
  std::string saves;
  bool weights_alone = false;                               // without the optimizer
  std::vector<std::pair<std::uint32_t, std::string>> logs;  // of its ranks
};

class Report {
 public:
  // Reports that this process launches, and which earlier launches are gone without an end
  // (killed): the script has tried again. With an empty path it reports nothing.
  explicit Report(const std::string& path, const Launched& launched = {});
  void end(const Ended& ended) const;

 private:
  void add(const std::string& line) const;
  io::UniqueFd fd_;
};

}  // namespace muster::shim
