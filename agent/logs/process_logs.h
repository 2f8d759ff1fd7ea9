// ProcessLogs reads the process logs of a run's ranks (plog_reader.h). They are read at each poll
// while a rank runs, so that little is left to read when its end waits for the evidence. A RunWatch
// owns it if a rank has a directory for such a log; only the watch thread uses it. The files are in
// the run directory, on the node's own disk. No errors: what cannot be read shows nothing.
//
// Polls are WatchOptions::blind_scan apart, also while the kernel reports no changes and logs are
// read more often.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "agent/logs/plog_reader.h"
#include "agent/logs/watch_tools.h"
#include "agent/logs/watcher.h"

namespace muster::agent {

class ProcessLogs final : public Watcher {
 public:
  using Readers = std::map<std::uint32_t, std::unique_ptr<PlogReader>>;  // by rank
  ProcessLogs(WatchTools& tools, Readers readers) : tools_(tools), readers_(std::move(readers)) {}

  bool pass(BootTime) override { return false; }
  void poll(const Now& now) override;
  // Takes the better line of both logs. A failed rank's process log is not read any more.
  [[nodiscard]] bool explain(RankEnding& ending) override;
  void free_room() override;

 private:
  WatchTools& tools_;
  Readers readers_;
  BootTime trim_at_{};
};

}  // namespace muster::agent
