// CheckpointScans finds out which checkpoints a run's save directory has, and reports new ones. A
// RunWatch owns it if the run saves checkpoints; only the watch thread uses it. The directory is
// where the job puts it, so scan threads read it (agent/saves/checkpoint_watch.h, SaveDir), as
// far as the job can reach (job_reach.h).
//
// A scan is due when inotify reports a change, and from time to time in any case: the kernel
// reports no changes of network file systems, and not all directories can be watched. Scans take at
// most a tenth of the time of a slow file system.
//
// The last scan begins after the run's sweep and is reported once. The report waits for it at most
// WatchOptions::last_scan; what the scan finds later is reported as any news.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agent/launch/job_reach.h"
#include "agent/logs/published_run.h"
#include "agent/logs/scans.h"
#include "agent/logs/watch_tools.h"
#include "agent/logs/watcher.h"
#include "agent/saves/checkpoint_watch.h"

namespace muster::agent {

class CheckpointScans final : public Watcher, public std::enable_shared_from_this<CheckpointScans> {
 public:
  CheckpointScans(WatchTools& tools, std::shared_ptr<PublishedRun> run, SaveDir dir,
                  JobReach reach)
      : tools_(tools),
        run_(std::move(run)),
        dir_(std::move(dir)),
        reach_(std::move(reach)),
        listener_(tools.changed_files, *this),
        scan_(tools.scans, dir_.path) {
    scan_.set_due();
  }

  bool pass(BootTime now) override;
  [[nodiscard]] BootTime next_due() const override;
  void changed(std::string_view) override { scan_.set_due(); }
  void swept(BootTime now) override;

 private:
  struct Seen;  // result of a scan
  void start(BootTime now);
  void take(Seen seen);
  // Registers the watches that the scan asked for. False: not all directories are watched.
  bool take_watches(const std::vector<Inotify::Asked>& asked);
  void report_last_scan();

  WatchTools& tools_;
  const std::shared_ptr<PublishedRun> run_;
  const SaveDir dir_;
  const JobReach reach_;
  const DirListener listener_;
  Scan scan_;
  BootTime earliest_{};  // of the next scan, if one is due
  BootTime latest_{};    // of the next scan in any case
  //   No -> Due (the run is swept) -> UnderWay -> Reported; Due -> Reported: it took too long
  enum class LastScan : std::uint8_t { No, Due, UnderWay, Reported } last_scan_ = LastScan::No;
  BootTime given_up_at_ = BootTime::max();  // while the last scan is Due or UnderWay
};

}  // namespace muster::agent
