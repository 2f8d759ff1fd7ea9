// Complaints writes the worker's own log, the run directory's logs/worker.log. Supervisor owns it.
// It runs on the worker's one thread.
//
// Each line states what the worker could not do. The file is opened for each line, so that a run
// without trouble has no file and no cost. The run directory stays open, so that one free
// descriptor is enough for a line.
#pragma once

#include <filesystem>
#include <string_view>

#include "common/io/unique_fd.h"
#include "common/rundir/layout.h"

namespace muster::worker {

class Complaints {
 public:
  explicit Complaints(const rundir::RunLayout& run);
  // Best effort: if the file cannot be opened, the line is lost.
  void say(std::string_view text);

 private:
  io::UniqueFd run_dir_;
  std::filesystem::path name_;  // of the file, below the run directory
};

}  // namespace muster::worker
