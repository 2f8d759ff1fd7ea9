// RunView reads one run from its run directory and from the process table; each call reads only
// what is new. A Host::Entry owns one, and uses it on the agent's loop. It reads and opens a pidfd;
// it starts, signals and writes nothing.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "agent/core/reconcile.h"
#include "agent/launch/job_reach.h"
#include "common/process/pidfd.h"
#include "common/rundir/event_log.h"
#include "common/rundir/records.h"

namespace muster::agent {

class RunView {
 public:
  RunView(rundir::RunLayout layout, BootId own_boot)
      : layout_(std::move(layout)),
        own_boot_(std::move(own_boot)),
        events_(layout_.events()),
        marks_(layout_.mark()) {}

  // Reads everything new: launch (once), claim (once), marks, events, worker. Returns true if
  // seen() has changed. After an error, what was already read stays.
  Result<bool> refresh();

  [[nodiscard]] const RunSeen& seen() const { return seen_; }
  [[nodiscard]] const rundir::RunLayout& layout() const { return layout_; }
  [[nodiscard]] const BootId& own_boot() const { return own_boot_; }
  // Without ranks and environments. Null while there is none.
  [[nodiscard]] const rundir::v1::Launch* launch() const { return launch_ ? &*launch_ : nullptr; }
  // The order in the launch record, without ranks, environments and files. A run that has lost its
  // record, but whose ranks are known, has an order that says only how its logs are read.
  [[nodiscard]] const v1::NodeLaunch& order() const { return order_; }
  // True if order() says how its logs are read: the launch record exists, or the rest of the run
  // shows its ranks.
  [[nodiscard]] bool order_known() const { return launch_ || ranks_traced_; }
  // Where the run's processes can write. With the launch record lost it is unknown, and then it is
  // that of the agent's own user.
  [[nodiscard]] JobReach reach() const;
  // from the claim, until its death is seen
  [[nodiscard]] const process::Pidfd* worker() const { return worker_ ? &*worker_ : nullptr; }
  // Set if it is unknown whether the worker lives (no free descriptor, for example). The worker
  // then counts as alive, and the caller must check again.
  [[nodiscard]] const std::optional<Error>& worker_unknown() const { return worker_unknown_; }
  // Start time of the worker that claimed the run on this boot. No older process carries the run's
  // process tag. 0: unknown.
  [[nodiscard]] std::uint64_t claimed_since() const {
    return claim_ && claim_->boot_id() == own_boot_.str() ? claim_->start_time() : 0;
  }
  [[nodiscard]] bool events_damaged() const { return events_.damaged(); }
  // what is appended from now on is never read again
  [[nodiscard]] bool marks_damaged() const { return marks_.damaged(); }
  // Sentences on records that are not believed: damaged, a link, of another user ("reading
  // '/x/claim': it belongs to user 1000, ..."). One for each file, empty if nothing is wrong.
  [[nodiscard]] std::array<std::string, 4> not_believed() const {
    return {launch_wrong_, claim_wrong_, events_.wrong(), marks_.wrong()};
  }
  // When the worker wrote that it stops its ranks.
  [[nodiscard]] std::optional<BootTime> stop_written() const { return stop_written_; }
  // The processes that the worker forked; each leads its own session.
  [[nodiscard]] const std::vector<process::ProcessId>& leaders() const { return leaders_; }
  // the evidence of this rank is in the mark file
  [[nodiscard]] bool marked_end(std::uint32_t rank) const { return ends_.contains(rank); }
  // Auxiliary processes that ended badly before a stop, and whose logs nobody has read for evidence
  // yet.
  [[nodiscard]] std::vector<std::string> auxiliaries_without_evidence() const;
  void give_auxiliary_evidence(const std::string& name, const std::string& evidence);

  // True: this incarnation of the agent has spawned a worker for the run. False: it has seen that
  // worker end.
  void set_spawned(bool spawned) { spawned_ = spawned; }

 private:
  Result<void> read_launch();
  Result<void> read_claim();
  void fold(const rundir::v1::Event& event);
  void fold(const rundir::v1::Mark& mark);
  void fold(const rundir::v1::AuxiliaryExited& exited, const rundir::v1::Event& event);
  void fold(const rundir::v1::ScriptRankSeen& rank);
  void judge_worker();
  void trace_ranks();

  rundir::RunLayout layout_;
  BootId own_boot_;
  rundir::EventReader events_;
  rundir::MarkReader marks_;
  std::optional<rundir::v1::Launch> launch_;
  v1::NodeLaunch order_;
  std::optional<rundir::v1::Claim> claim_;
  bool claim_damaged_ = false;
  std::string launch_wrong_, claim_wrong_;
  std::optional<process::Pidfd> worker_;
  bool worker_gone_ = false;
  std::optional<Error> worker_unknown_;
  bool spawned_ = false;
  std::map<std::uint32_t, RankMarks> ends_;
  std::map<std::string, std::string> auxiliary_evidence_;  // by name
  std::vector<AuxiliaryExitSeen> auxiliaries_waiting_;     // for their evidence
  bool ranks_traced_ = false;
  std::vector<process::ProcessId> leaders_;
  std::optional<BootTime> stop_written_;
  rundir::v1::StopRequested::Why stop_why_ = rundir::v1::StopRequested::WHY_UNSPECIFIED;
  RunSeen seen_;
};

}  // namespace muster::agent
