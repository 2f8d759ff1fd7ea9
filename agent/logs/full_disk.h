// FullDisk explains the end of a rank that failed and whose logs show no reason: if the disk of the
// logs is full, the rank could not write one. A RunWatch owns it, behind the watchers of logs; only
// the watch thread uses it. It reads the free bytes of the node's own disk. No errors: if the
// number is unknown, there is room.
#pragma once

#include <filesystem>
#include <utility>

#include "agent/logs/watch_tools.h"
#include "agent/logs/watcher.h"

namespace muster::agent {

class FullDisk final : public Watcher {
 public:
  FullDisk(WatchTools& tools, std::filesystem::path logs_dir)
      : tools_(tools), logs_dir_(std::move(logs_dir)) {}
  bool pass(BootTime) override { return false; }
  [[nodiscard]] bool explain(RankEnding& ending) override;

 private:
  WatchTools& tools_;
  const std::filesystem::path logs_dir_;
};

}  // namespace muster::agent
