// SuccessFiles checks whether the success file of a rank exists that has ended well. A RunWatch
// owns it if the run has success files; only the watch thread uses it. The files are where the job
// puts them, so scan threads check. The answer waits as long as the file system hangs; the
// run's RunReporting does not. They exist as far as the job can reach (job_reach.h), and are never
// opened for reading.
//
// A rank that ends during a check waits for the next one: it may have written the file after the
// check. No errors: a file that cannot be seen does not exist.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agent/launch/job_reach.h"
#include "agent/logs/log_tails.h"
#include "agent/logs/scans.h"
#include "agent/logs/watch_tools.h"
#include "agent/logs/watcher.h"

namespace muster::agent {

class SuccessFiles final : public Watcher, public std::enable_shared_from_this<SuccessFiles> {
 public:
  // The file of a rank: its own one, or that of the whole run.
  struct Paths {
    std::map<std::uint32_t, std::string> own;
    std::string of_run;
    // Empty: none.
    [[nodiscard]] const std::string& of(RankNo rank) const;
    // The first file; empty: no rank has one. Its file system counts as that of all of them.
    [[nodiscard]] const std::string& any() const;
  };
  SuccessFiles(WatchTools& tools, const PublishedRun& run, RankEndings& endings, Paths paths,
               JobReach reach)
      : tools_(tools),
        run_(run.key),
        endings_(endings),
        paths_(std::move(paths)),
        reach_(std::move(reach)),
        scan_(tools.scans, paths_.any()) {
    scan_.set_due();  // no rank waits for it yet; it finds out the file system
  }

  bool pass(BootTime now) override;
  [[nodiscard]] BootTime next_due() const override { return scan_.next_check(); }
  [[nodiscard]] bool explain(RankEnding& ending) override;

 private:
  void start();
  void take(const std::vector<bool>& there, std::uint64_t device);

  WatchTools& tools_;
  const RunKey run_;
  RankEndings& endings_;
  const Paths paths_;
  const JobReach reach_;
  Scan scan_;
  std::vector<RankEnding> waiting_;  // for the next check
  std::vector<RankEnding> checked_;  // by the check that is under way
};

}  // namespace muster::agent
