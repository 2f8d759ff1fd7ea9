// A rank that is a script (launch.per: node): it has ended with the last process that it started, and well only when all of them have.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <set>

#include "common/io/file.h"
#include "worker/children.h"
#include "worker/launch_report.h"
#include "worker/supervisor.h"

namespace muster::worker {
namespace {

constexpr std::size_t kNamedMost = 4096;
constexpr auto kNameAgainAfter = std::chrono::milliseconds(200);

std::string how(int code, int signal) { return signal != 0 ? "was ended by signal " + std::to_string(signal) : "ended with status " + std::to_string(code); }

}  // namespace

// One script and nothing beside it: whoever else is a child of this process has come from it.
bool Supervisor::runs_script() const { return launch_.scripts() && launch_.ranks_size() == 1 && launch_.companions().empty(); }

// The script has ended. True: what it has started may go on. A bad end of the script is the end of all, unless a stop gives them time.
bool Supervisor::goes_on_without_script(int code, int signal) {
  if (!runs_script()) return false;
  const bool in_time = phase_ == Phase::Running ? code == 0 && signal == 0 : kill_at_.has_value();
  if (!in_time) return false;
  script_end_ = {.code = code, .signal = signal};
  script_ended_ = true;
  for (const pid_t pid : children()) {
    if (descendants_.size() < kNamedMost) descendants_.emplace(pid, "");
  }
  name_descendants();
  name_again_at_ = clock_.now().boot + kNameAgainAfter;
  return true;
}

// Those whose parent the script was: a dead one's environment cannot be read any more, and one that is about to exec has the script's still. What comes later
// was started by one of them.
void Supervisor::name_descendants() {
  for (auto& [pid, rank] : descendants_) {
    if (rank.empty()) rank = rank_of_process(pid);
  }
}

void Supervisor::descendant_ended(pid_t pid, int code, int signal) {
  const auto found = descendants_.find(pid);
  const std::string rank = found == descendants_.end() ? std::string() : found->second;
  if (found != descendants_.end()) descendants_.erase(found);
  if (!runs_script() || phase_ != Phase::Running || (code == 0 && signal == 0) || !descendant_failure_.empty()) return;
  descendant_failure_ = (rank.empty() ? "process " + std::to_string(pid) : rank) + ", which the script had left running, " + how(code, signal);
  descendant_end_ = {.code = code, .signal = signal};
  rank_lost_ = !rank.empty();
}

// True: the script's descendants are waited for. Not when one that is a rank has ended badly: the others would wait for it.
bool Supervisor::follows() {
  if (!script_ended_) return false;
  const bool killed = phase_ == Phase::Stopping && !kill_at_;
  if (!killed && !rank_lost_ && has_children()) return true;
  script_ended_ = false;
  rank_exited(launch_.ranks(0).rank(), script_end_.code, script_end_.signal);
  return false;
}

// What a launcher inside has told, or one that was left running, counts for the script, whose own status may be that of a `tee`.
void Supervisor::judge_script(int& code, int& signal) {
  if (!runs_script() || phase_ != Phase::Running || signal != 0) return;
  const LaunchEnd told = read_launch_report(run_.shim_report());
  std::string why;
  if (told.bad()) {
    why = told.name + " of the launcher inside " + how(told.code, told.signal);
  } else if (code == 0 && !descendant_failure_.empty()) {
    why = descendant_failure_;
  } else {
    return;
  }
  const End true_end = told.bad() ? End{.code = told.code, .signal = told.signal} : descendant_end_;
  if (true_end.code == code && true_end.signal == signal) return;
  const std::string line = "muster: the script " + how(code, signal) + ", and " + why + "\n";
  code = true_end.code;
  signal = true_end.signal;
  const io::UniqueFd log(::open(launch_.ranks(0).log().c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  std::size_t written = 0;
  if (log) (void)io::write_all(log.get(), line, written);
}

void Supervisor::signal_descendants(int number) {
  if (!script_ended_) return;
  std::set<pid_t> groups;
  const pid_t own = ::getpgrp();
  for (const pid_t child : children()) {
    // An unreaped child's group has that number, and nobody else's can.
    const pid_t group = ::getpgid(child);
    if (group > 0 && group != own) {
      if (groups.insert(group).second) ::kill(-group, number);
    } else {
      ::kill(child, number);
    }
  }
}

}  // namespace muster::worker
