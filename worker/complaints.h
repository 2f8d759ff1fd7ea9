// The worker's own log: what it could not do, one line each, in the run directory's
// logs/worker.log. Opened at the first line, so that a run without trouble pays nothing for it. The
// worker is single-threaded.
#pragma once

#include <filesystem>
#include <string_view>

namespace muster::worker {

class Complaints {
 public:
  explicit Complaints(std::filesystem::path path) : path_(std::move(path)) {}
  // Best effort: with nowhere to write it is lost.
  void say(std::string_view text);

 private:
  std::filesystem::path path_;
};

}  // namespace muster::worker
