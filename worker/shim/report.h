// What the shim tells the worker of its launch, for a script ends with the status of what is behind a pipe. The lines are in worker/launch_report.h; each is
// one write to a file that several launches may append to at a time.
#pragma once

#include <string>

#include "common/io/unique_fd.h"
#include "worker/shim/gang.h"

namespace muster::shim {

class Report {
 public:
  // Tells that this process launches, and which launches before it are gone without an end (killed): the script has tried again. Without a path: tells nothing.
  explicit Report(const std::string& path);
  void end(const Ended& ended) const;

 private:
  void add(const std::string& line) const;
  io::UniqueFd fd_;
};

}  // namespace muster::shim
