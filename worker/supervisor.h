// The worker: parent of an attempt's processes on one node. One thread, one epoll; owns them, the
// events file and the claim.
//
//   claim ──> setup, if there is one ──> fork auxiliaries, ranks ─(last exec)──> Started ──┐
//               │                            │                                            │
//               └─bad end, late──────────────┴──exec failed──> StartFailed ──┐            │ Exited
//   SIGTERM, lease past or gone, ────────────────────────────────────────────┤            │ a rank
//   an auxiliary process's bad end                                           v            │
//                                                                      StopRequested      │
//                                                                            │            │ all
//                                                     SIGTERM, grace, SIGKILL│            │ ended
//                                                                            v            v
//                                                                            sweep ──> Swept, end
//
//   Exited is written as each rank ends; one may come before Started.
//
// Promises:
//   - StopRequested is written before the first signal is sent, and an exit that was there before
//     the stop is recorded before it.
//   - A process group is killed before its leader is reaped: nobody can have the group's number in
//     between.
//   - Swept is the last event, and only when it is true. Without it the worker was killed, and
//     whoever finds that sweeps.
//   - One rank's end stops no other: to stop is the controller's decision. An auxiliary process's
//     bad end
//     stops the ranks: they cannot do without it. An auxiliary process outlives the ranks of its
//     node for
//     those of others, until it ends by itself or is asked to stop.
//   - A script's (launch.per: node) end is that of the last process that it started, and bad when
//     one of those that were there at its own end ended badly. What ended before that was its own
//     business.
//   - Nothing here waits but epoll. Events that the disk has no room for are kept and tried again.
//   - On a disk that takes nothing for another reason (read-only after an error, errors that last)
//     no end can be recorded, and nobody would ever hear of one.
//   So
//     with the first end all is killed and swept, and the worker ends without its last word: the
//     agent sweeps once more, and reports.
// Leaves to others: making the run directory and the lease (agent), judging (controller), logs (the
// ranks write their own files).
#pragma once

#include <signal.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/base/time.h"
#include "common/io/unique_fd.h"
#include "common/process/cgroup.h"
#include "common/rundir/records.h"
#include "worker/complaints.h"
#include "worker/event_queue.h"
#include "worker/leftovers.h"
#include "worker/limits.h"
#include "worker/process_start.h"
#include "worker/script_ranks.h"

namespace muster::worker {

class Supervisor {
 public:
  // The run directory is claimed by us. Signals are blocked (block_signals).
  Supervisor(rundir::RunLayout run, BootId boot, EventQueue events, const Clock& clock);
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;
  ~Supervisor() = default;

  // From the launch record to Swept. Errors: this process could not get what it needs to mind
  // ranks, and has started none.
  Result<void> run();

 private:
  enum class Phase { Running, Stopping, Sweeping, Swept };

  Result<void> open_descriptors();
  Result<void> watch(int fd);
  bool take_launch();  // false: nothing will run, the reason is in the events
  bool lease_allows();
  void join_cgroup();
  io::UniqueFd open_reports();
  [[nodiscard]] StartContext start_context(int report_fd) const;
  void start(const std::vector<ProcessOf>& wanted);
  void tell_started(pid_t pid, const ProcessOf& process);
  [[nodiscard]] Duration setup_time() const;
  void start_setup();
  void setup_ended(int code, int signal);
  void start_all();
  void read_reports();
  void refuse(std::uint32_t rank, int error, std::string text);

  void loop();
  void read_signals(bool& stop_asked);
  void reap();
  void exited(pid_t pid, const ProcessOf& process, const siginfo_t& info);
  void rank_exited(std::uint32_t rank, int code, int signal);
  void auxiliary_exited(const std::string& name, int code, int signal);
  bool oom_killed(int signal);
  [[nodiscard]] std::uint64_t count_oom_kills() const;
  [[nodiscard]] bool runs_script() const;
  bool goes_on_without_script(int code, int signal);
  void name_descendants();
  [[nodiscard]] std::optional<std::uint32_t> scripts_own_rank() const;
  void begin_scanning();
  void scan_for_ranks(Duration least_age);
  bool check_launches();
  void descendant_ended(pid_t pid, int code, int signal);
  bool follows();
  std::optional<std::uint32_t> judge_script(int& code, int& signal);
  void signal_descendants(int number) const;
  void say_in_log(const std::string& line) const;
  void stop(rundir::v1::StopRequested::Why why, bool at_once);
  void signal_all(int number);
  void judge_disk();
  void on_time();
  void advance();
  void sweep();
  void flush();
  void arm_timer();

  rundir::RunLayout run_;
  BootId boot_;
  EventQueue events_;
  const Clock& clock_;
  Complaints complaints_;
  rundir::v1::Launch launch_;
  RankLimits limits_;

  io::UniqueFd epoll_;
  io::UniqueFd signals_;
  io::UniqueFd timer_;
  io::UniqueFd null_;
  io::UniqueFd reports_;  // read end; open until the last rank has been exec'd or has failed
  std::optional<process::Cgroup> cgroup_;
  std::optional<Leftovers> leftovers_;

  Phase phase_ = Phase::Running;
  bool start_failed_ = false;
  bool setting_up_ = false;  // the setup runs
  bool setup_timed_out_ = false;
  bool auxiliary_failed_ = false;  // in this round of reaping
  // that run, by pid of the leader, which is its group's number
  std::map<pid_t, ProcessOf> processes_;
  std::size_t ranks_running_ = 0;       // of them
  std::vector<std::string> inherited_;  // of the setup
  std::uint64_t oom_kills_ = 0;
  struct End {
    int code = 0, signal = 0;
  };
  bool script_ended_ = false;  // and processes that it started go on
  End script_end_, descendant_end_;
  struct LeftRunning {
    std::string rank;    // that it takes itself for
    bool dying = false;  // already when the script ended: by the script's own signal
  };
  std::map<pid_t, LeftRunning> left_running_;  // by the script
  std::string descendant_failure_;             // the first bad end of one; empty: none
  bool rank_lost_ = false;                     // it was a rank's
  std::optional<BootTime> name_again_at_;
  std::optional<ScriptRanks> script_ranks_;     // of a script
  std::optional<BootTime> scan_at_;             // for them, again
  Duration scan_interval_{};                    // the next time
  bool saves_reported_ = false;                 // where a launch of the script would have saved
  std::set<std::string> launch_logs_reported_;  // of ranks that the script's launches have started
  BootTime lease_until_{};
  std::optional<BootTime> setup_by_;       // it is too late then
  std::optional<BootTime> kill_at_;        // end of the stop's grace
  bool kill_sent_ = false;                 // to all that run
  std::optional<BootTime> retry_at_;       // events wait for room on the disk
  std::optional<BootTime> failing_since_;  // the disk, otherwise than for want of room
  // and an end has to be recorded: it is not waited for any more
  bool disk_lost_ = false;
  std::optional<BootTime> resweep_at_;  // a sweep met an error
};

// SIGTERM, SIGCHLD, SIGINT, SIGHUP and the like are blocked, all dispositions default: signalfd
// reads what matters, the ranks get a clean slate.
void block_signals();

}  // namespace muster::worker
