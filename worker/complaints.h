// Complaints writes the worker's own log, the run directory's logs/worker.log. Supervisor owns it.
// It runs on the worker's one thread.
//
// Each line states what the worker could not do. The file is opened for each line, so that a run
// without trouble has no file and no cost.
#pragma once

#include <filesystem>
#include <string_view>

namespace muster::worker {

class Complaints {
 public:
  explicit Complaints(std::filesystem::path path) : path_(std::move(path)) {}
  // Best effort: if the file cannot be opened, the line is lost.
  void say(std::string_view text);

 private:
  std::filesystem::path path_;
};

}  // namespace muster::worker
