// A rank that is a script (launch.per: node). It ends with the last process that it started, and it
// ends well only if all of them end well.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>

#include "common/io/file.h"
#include "common/process/pidfd.h"
#include "common/rundir/run_file.h"
#include "worker/children.h"
#include "worker/launch_report.h"
#include "worker/supervisor.h"

namespace muster::worker {
namespace {

constexpr std::size_t kNamedMost = 4096;
constexpr int kKilledBase = 128;  // a shell's status for a child killed by signal N is 128 + N
constexpr auto kNameAgainAfter = std::chrono::milliseconds(200);
// Nothing reports a process that a script starts, so the worker scans. A scan takes a fraction of a
// millisecond: first the scans are frequent, later rare.
constexpr Duration kFirstScan = std::chrono::milliseconds(100),
                   kScanIntervalMost = std::chrono::seconds(10);

// "rank 5", "rank 5, which the script had left running, ...".
std::optional<std::uint32_t> number_of_rank(std::string_view name) {
  constexpr std::string_view kRank = "rank ";
  if (!name.starts_with(kRank)) return std::nullopt;
  std::uint32_t number = 0;
  const char* const end = name.data() + name.size();
  const auto parsed = std::from_chars(name.data() + kRank.size(), end, number);
  return parsed.ec == std::errc() && (parsed.ptr == end || *parsed.ptr == ',')
             ? std::optional(number)
             : std::nullopt;
}

std::string how(int code, int signal) {
  return signal != 0 ? "was ended by signal " + std::to_string(signal)
                     : "ended with status " + std::to_string(code);
}

}  // namespace

// The node has one script and no other process: every other child of this process comes from the
// script.
bool Supervisor::runs_script() const {
  return launch_.scripts() && launch_.ranks_size() == 1 && launch_.auxiliaries().empty();
}

// Handles the end of the script. Returns true if its processes may continue. A bad end of the
// script ends all of them, unless a stop gives them time.
bool Supervisor::goes_on_without_script(int code, int signal) {
  if (!runs_script()) return false;
  begin_scanning();
  // A bad end kills all of them at once: the processes that live now are all that there were.
  scan_for_ranks(code == 0 && signal == 0 ? ScriptRanks::kLivesAtLeast : Duration::zero());
  const bool in_time = phase_ == Phase::Running ? code == 0 && signal == 0 : kill_at_.has_value();
  if (!in_time) return false;
  script_end_ = {.code = code, .signal = signal};
  script_ended_ = true;
  for (const pid_t pid : children()) {
    if (left_running_.size() < kNamedMost)
      left_running_.emplace(pid, LeftRunning{.rank = {}, .dying = is_dying(pid)});
  }
  name_descendants();
  name_again_at_ = clock_.now().boot + kNameAgainAfter;
  return true;
}

// The rank in the environment that the script was started with: a script that has ended has no
// environment in /proc.
std::optional<std::uint32_t> Supervisor::scripts_own_rank() const {
  std::string environment;
  const auto add = [&](const auto& variables) {
    for (const std::string& variable : variables)
      if (variable.starts_with("RANK")) environment.insert(0, variable + '\0');
  };
  add(inherited_);
  add(launch_.env());
  add(launch_.ranks(0).env());  // the last variable counts, and the first one is found
  return rank_number_in(environment);
}

void Supervisor::begin_scanning() {
  if (!runs_script()) return;
  if (!script_ranks_) script_ranks_.emplace(run_.logs(), scripts_own_rank());
  scan_interval_ = kFirstScan;
  scan_at_ = clock_.now().boot + scan_interval_;
}

// The ranks of a launch that muster answers have logs of their own. After such a launch the worker
// does not scan repeatedly, but once more at the script's end.
void Supervisor::scan_for_ranks(Duration least_age) {
  scan_at_.reset();
  if (!script_ranks_ || phase_ != Phase::Running) return;
  for (const ScriptRank& found : script_ranks_->scan(clock_.now().boot - least_age)) {
    auto& seen = *events_.add().mutable_script_rank_seen();
    seen.set_rank(found.rank);
    seen.set_pid(static_cast<std::uint64_t>(found.process.pid));
    seen.set_start_time(found.process.start_time);
    seen.set_log(found.log);
  }
  scan_interval_ = std::min(2 * scan_interval_, kScanIntervalMost);
  if (!check_launches() && !script_ranks_->full()) scan_at_ = clock_.now().boot + scan_interval_;
}

// Returns true if the script has made a launch.
bool Supervisor::check_launches() {
  const Launches launches = parse_launches(read_launches(run_.shim_report()));
  if (launches.saves && !saves_reported_) {
    saves_reported_ = true;
    auto& reported = *events_.add().mutable_script_launched();
    reported.set_first_rank(launches.saves->first_rank);
    reported.set_ranks(launches.saves->ranks);
    reported.set_save(launches.saves->dir);
    reported.set_weights_alone(launches.saves->weights_alone);
  }
  // No process is recorded: the file was new, so all of it is the rank's.
  for (const LaunchLog& log : launches.logs) {
    if (launch_logs_reported_.size() >= ScriptRanks::kReportedMost ||
        !launch_logs_reported_.insert(log.path).second)
      continue;
    auto& seen = *events_.add().mutable_script_rank_seen();
    seen.set_rank(log.rank);
    seen.set_log(log.path);
  }
  return launches.any;
}

// Names the children that the script left. The environment of a dead process cannot be read any
// more, and a process before its exec still has the script's environment.
void Supervisor::name_descendants() {
  for (auto& [pid, left] : left_running_) {
    if (left.rank.empty()) left.rank = rank_of_process(pid);
  }
}

// While the script runs, the end of an orphan does not count. Later, the end of a process that did
// not exist at the script's end does not count either: a process left by the script has started it.
// A process that is no rank may be ended like a monitor, for example by the script's last lines.
void Supervisor::descendant_ended(pid_t pid, int code, int signal) {
  const auto found = left_running_.find(pid);
  if (found == left_running_.end()) return;
  const LeftRunning left = found->second;
  left_running_.erase(found);
  if (!script_ended_ || phase_ != Phase::Running || (code == 0 && signal == 0) ||
      !descendant_failure_.empty())
    return;
  const bool asked =
      signal == SIGTERM || signal == SIGINT || signal == SIGHUP || code == kKilledBase + SIGTERM;
  if (left.rank.empty() && (asked || (left.dying && signal == SIGKILL))) return;
  descendant_failure_ = (left.rank.empty() ? "process " + std::to_string(pid) : left.rank) +
                        ", which the script had left running, " + how(code, signal);
  descendant_end_ = {.code = code, .signal = signal};
  rank_lost_ = !left.rank.empty();
}

// Returns true while the worker waits for the script's descendants. It does not wait if one that is
// a rank has ended badly: the others would wait for that rank.
bool Supervisor::follows() {
  if (!script_ended_) return false;
  const bool killed = phase_ == Phase::Stopping && !kill_at_;
  if (!killed && !rank_lost_ && has_children()) return true;
  script_ended_ = false;
  rank_exited(launch_.ranks(0).rank(), script_end_.code, script_end_.signal);
  return false;
}

// A bad end that a launcher inside the script has reported counts for the script, and so does that
// of a process that was left running. The script's own status may be that of a `tee`. A launcher
// that has reported nothing may have been killed with the script: that is no better reason than the
// script's own. Returns the training rank, if it was one.
std::optional<std::uint32_t> Supervisor::judge_script(int& code, int& signal) {
  if (!runs_script() || phase_ != Phase::Running || signal != 0) return std::nullopt;
  const LaunchEnd reported = read_launch_report(run_.shim_report());
  End true_end = descendant_end_;
  std::string why = descendant_failure_;
  std::optional<std::uint32_t> rank = number_of_rank(why);
  if (reported.bad() && (code == 0 || !reported.name.empty())) {
    true_end = {.code = reported.code, .signal = reported.signal};
    why = reported.name.empty()
              ? "the launcher inside was killed"
              : reported.name + " of the launcher inside " + how(reported.code, reported.signal);
    rank = number_of_rank(reported.name);
  } else if (code != 0) {
    return std::nullopt;
  } else if (why.empty()) {
    if (!reported.launched && !launch_.shim_dir().empty())
      say_in_log(
          "muster: the script called no launcher that muster answers (torchrun, msrun, python -m "
          "torch.distributed.run, by the PATH it was given): what it started had its place from "
          "the script alone");
    return std::nullopt;
  }
  if (!rank && true_end.code == code && true_end.signal == signal) return std::nullopt;
  say_in_log("muster: the script " + how(code, signal) + ", and " + why);
  code = true_end.code;
  signal = true_end.signal;
  return rank;
}

// The job's user may have put anything at the path of the log.
void Supervisor::say_in_log(const std::string& line) const {
  const io::UniqueFd log = rundir::open_file(launch_.ranks(0).log(), O_WRONLY | O_APPEND);
  if (!log) return;
  std::size_t written = 0;
  (void)io::write_all(log.get(), line + "\n", written);
}

// Signals the script's descendants, in any group or session. Those in its own group get the signal
// with the group.
void Supervisor::signal_descendants(int number) const {
  if (!runs_script() || setting_up_) return;
  for (const Descendant& process : descendants()) {
    if (processes_.contains(process.group)) continue;
    if (const auto pidfd = process::Pidfd::open(process.id); pidfd) (void)pidfd->signal(number);
  }
}

}  // namespace muster::worker
