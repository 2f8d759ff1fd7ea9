// Supervisor is the main object of the worker, the parent of an attempt's processes on one node.
// main() (worker/main.cc) creates it on its stack. It has one thread and one epoll.
//
// It owns the processes, the events file and the claim.
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
//   - StopRequested is written before the first signal is sent. An exit that existed before the
//     stop is recorded before it.
//   - A process group is killed before its leader is reaped, so that no other process can get the
//     group's number in between.
//   - Swept is the last event, and it is written only when it is true. If Swept is missing, the
//     worker was killed, and the agent that finds this sweeps.
//   - The end of one rank stops no other rank: the controller decides to stop. A bad end of an
//     auxiliary process stops the ranks, which cannot run without it. An auxiliary process stays
//     after the ranks of its node, for the ranks of other nodes, until it ends by itself or is
//     asked to stop.
//   - A script (launch.per: node) ends with the last process that it started. The end is bad if a
//     process that existed at the script's own end ended badly. Processes that ended before that do
//     not count.
//   - Only epoll waits here. Events that the disk has no room for are kept, and the write is tried
//     again.
//   - A disk may refuse writes for another reason (read-only after an error, or lasting errors).
//     Then no end can be recorded, and the agent would never know of one. With the first end, the
//     worker therefore kills and sweeps everything, and exits without Swept. The agent sweeps once
//     more, and reports.
//
// Left to others: creating the run directory and the lease (agent), judging (controller), logs (the
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
  // The worker has claimed the run directory. Signals are blocked (block_signals).
  Supervisor(rundir::RunLayout run, BootId boot, EventQueue events, const Clock& clock);
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;
  ~Supervisor() = default;

  // Runs the attempt from the launch record to Swept. Errors: this process could not get what it
  // needs to supervise ranks, and has started none. Also: the disk takes no writes, and the end is
  // not recorded.
  Result<void> run();

 private:
  enum class Phase { Running, Stopping, Sweeping, Swept };

  Result<void> open_descriptors();
  Result<void> watch(int fd);
  bool take_launch();  // false: nothing will run, and the events have the reason
  bool lease_allows();
  void join_cgroup();
  io::UniqueFd open_reports();
  [[nodiscard]] StartContext start_context(int report_fd, int run_dir_fd) const;
  void start(const std::vector<ProcessOf>& wanted);
  void tell_started(pid_t pid, const ProcessOf& process);
  [[nodiscard]] Duration setup_time() const;
  void start_setup();
  void setup_ended(int code, int signal);
  void start_all();
  void read_reports();
  void refuse(int error, std::string text);

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
  io::UniqueFd reports_;  // read end; open until the last process has been exec'd or has failed
  std::optional<process::Cgroup> cgroup_;
  std::optional<Leftovers> leftovers_;

  Phase phase_ = Phase::Running;
  bool start_failed_ = false;
  bool setting_up_ = false;  // the setup runs
  bool setup_timed_out_ = false;
  bool auxiliary_failed_ = false;  // in this round of reaping
  // Running processes by the pid of the leader, which is also the number of its group.
  std::map<pid_t, ProcessOf> processes_;
  std::size_t ranks_running_ = 0;       // ranks among them
  std::vector<std::string> inherited_;  // from the setup
  std::vector<std::string> secrets_;    // NAME=value
  std::uint64_t oom_kills_ = 0;
  struct End {
    int code = 0, signal = 0;
  };
  bool script_ended_ = false;  // and processes that it started continue
  End script_end_, descendant_end_;
  struct LeftRunning {
    std::string rank;    // named by its environment
    bool dying = false;  // already when the script ended: by the script's own signal
  };
  std::map<pid_t, LeftRunning> left_running_;  // by the script
  std::string descendant_failure_;             // the first bad end of one; empty: none
  bool rank_lost_ = false;                     // that end was a rank's
  std::optional<BootTime> name_again_at_;
  std::optional<ScriptRanks> script_ranks_;     // of a script
  std::optional<BootTime> scan_at_;             // next scan for them
  Duration scan_interval_{};                    // until the scan after that
  bool saves_reported_ = false;                 // where a launch of the script would have saved
  std::set<std::string> launch_logs_reported_;  // logs of ranks that the script's launches started
  BootTime lease_until_{};
  std::optional<BootTime> setup_by_;       // deadline of the setup
  std::optional<BootTime> kill_at_;        // end of the stop grace
  bool kill_sent_ = false;                 // to all running processes
  std::optional<BootTime> retry_at_;       // the waiting events are written again
  std::optional<BootTime> failing_since_;  // disk errors other than lack of space
  // An end must be recorded and cannot be: the worker no longer waits for the disk.
  bool disk_lost_ = false;
  std::optional<BootTime> resweep_at_;  // after an error of a sweep
};

// Blocks SIGTERM, SIGCHLD, SIGINT, SIGHUP and similar signals, and sets all dispositions to
// default. A signalfd reads the important signals, and the ranks start with default signal
// handling.
void block_signals();

}  // namespace muster::worker
