// Starts an attempt: the launch record, the setup, and then everything else at once.
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "common/io/room.h"
#include "common/process/identity.h"
#include "worker/secrets.h"
#include "worker/setup_environment.h"
#include "worker/supervisor.h"

namespace muster::worker {
namespace {

// A shell's status for a command that signal N ended is the sum of this and N (POSIX, 2.8.2).
constexpr int kShellSignalBase = 128;

using rundir::v1::StopRequested;

constexpr auto kSetupTimeDefault = std::chrono::minutes(30);

// Too full for another line.
bool is_full(const std::filesystem::path& dir) {
  const auto room = io::room_at(dir);
  return room && (room->bytes < 4096 || room->inodes == 0);
}

}  // namespace

bool Supervisor::take_launch() {
  auto launch = rundir::read_launch(run_);
  if (!launch) {
    refuse(0, launch.error().message);
  } else if (!*launch) {
    refuse(ENOENT, "reading '" + run_.launch().string() + "': it is not there");
  } else if ((*launch)->boot_id() != boot_.str()) {
    refuse(0, "starting attempt " + std::to_string((*launch)->attempt()) +
                  ": it was to run on boot '" + (*launch)->boot_id() + "', this is '" +
                  boot_.str() + "'");
  } else if ((*launch)->ranks_size() == 0 || (*launch)->process_tag().empty()) {
    refuse(EINVAL, "starting attempt " + std::to_string((*launch)->attempt()) +
                       ": its launch record has no ranks or no process tag");
  } else {
    launch_ = std::move(**launch);
    auto secrets = read_secrets(launch_, STDIN_FILENO);
    if (!secrets) {
      refuse(EAGAIN, secrets.error().message);
      return false;
    }
    secrets_ = *std::move(secrets);
    if (lease_allows()) return true;
    stop(StopRequested::WHY_ORPHANED, true);
  }
  return false;
}

// An unreadable lease counts as missing: after the grace another node may run the next attempt, so
// doubt ends this one.
bool Supervisor::lease_allows() {
  auto lease = rundir::read_lease(run_);
  // On a full disk the lease is overwritten in place: a reader at that moment must read again.
  for (int again = 0; again < 3 && !lease && lease.error().code == ErrorCode::DataLoss; ++again)
    lease = rundir::read_lease(run_);
  if (!lease) {
    complaints_.say(lease.error().message);
    return false;
  }
  if (!*lease) {
    complaints_.say("reading '" + run_.lease().string() +
                    "': it is not there; the agent removed it or never made it");
    return false;
  }
  const auto until = rundir::lease_end(**lease, boot_);
  if (!until || *until <= clock_.now().boot) return false;
  lease_until_ = *until;
  return true;
}

void Supervisor::join_cgroup() {
  oom_kills_ = count_oom_kills();
  if (launch_.cgroup().empty()) return;
  auto cgroup = process::Cgroup::make(launch_.cgroup());
  if (!cgroup) {
    complaints_.say(cgroup.error().message +
                    "; going on without it: what ranks leave behind is found by its environment");
    return;
  }
  cgroup_.emplace(std::move(*cgroup));
  oom_kills_ = count_oom_kills();
}

// Opens one pipe for each start. When it ends, no process is between fork and exec any more. No
// descriptor: the start is refused.
io::UniqueFd Supervisor::open_reports() {
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) {
    const int error = errno;
    refuse(error, fail_errno("making a pipe", error).error().message);
    return {};
  }
  reports_.reset(pipe[0]);
  ::fcntl(reports_.get(), F_SETFL, O_NONBLOCK);
  return io::UniqueFd(pipe[1]);
}

StartContext Supervisor::start_context(int report_fd, int run_dir_fd) const {
  return {.launch = &launch_,
          .inherited = inherited_.empty() ? nullptr : &inherited_,
          .secrets = secrets_.empty() ? nullptr : &secrets_,
          .process_tag = std::string(rundir::kProcessTagVariable) + "=" + launch_.process_tag(),
          .run_dir = run_.root().string(),
          .run_dir_fd = run_dir_fd,
          .worker = ::getpid(),
          .null_fd = null_.get(),
          .report_fd = report_fd,
          .nofile = limits_.nofile,
          .cgroup_dir_fd = cgroup_ ? cgroup_->dir_fd() : -1,
          .cgroup_procs_fd = cgroup_ ? cgroup_->procs_fd() : -1};
}

// Forks the processes in this order, and reports them when all are forked: nothing delays the next
// fork.
void Supervisor::start(const std::vector<ProcessOf>& wanted) {
  const auto run_dir = rundir::open_run(run_);
  if (!run_dir) return refuse(ENOENT, run_dir.error().message);
  const io::UniqueFd write_end = open_reports();
  if (!write_end) return;
  const StartContext context = start_context(write_end.get(), run_dir->fd());
  std::optional<Error> failure;
  for (const ProcessOf& process : wanted) {
    auto pid = start_process(context, process);
    if (!pid) {
      failure = std::move(pid.error());
      break;
    }
    processes_.emplace(*pid, process);
    if (process.kind == ProcessKind::Rank) ++ranks_running_;
  }
  for (const auto& [pid, process] : processes_) tell_started(pid, process);
  flush();
  if (auto watched = watch(reports_.get()); !watched) complaints_.say(watched.error().message);
  if (failure) refuse(EAGAIN, failure->message);
  if (cgroup_ && cgroup_->gone()) {
    complaints_.say("starting in cgroup '" + launch_.cgroup() +
                    "': it was removed meanwhile; going on without it: what ranks leave behind is "
                    "found by its environment");
    cgroup_.reset();
  }
}

void Supervisor::tell_started(pid_t pid, const ProcessOf& process) {
  const auto fill = [pid](auto& started) {
    started.set_pid(static_cast<std::uint64_t>(pid));
    // The stat of an unreaped child can always be read.
    if (const auto identity = process::identify(pid)) started.set_start_time(identity->start_time);
  };
  auto& event = events_.add();
  const auto index = static_cast<int>(process.index);
  switch (process.kind) {
    case ProcessKind::Rank:
      event.mutable_rank_started()->set_rank(launch_.ranks(index).rank());
      return fill(*event.mutable_rank_started());
    case ProcessKind::Auxiliary:
      event.mutable_auxiliary_started()->set_name(launch_.auxiliaries(index).name());
      return fill(*event.mutable_auxiliary_started());
    case ProcessKind::Setup: return fill(*event.mutable_setup_started());
  }
}

Duration Supervisor::setup_time() const {
  return launch_.setup().timeout_ms() > 0
             ? Duration(std::chrono::milliseconds(launch_.setup().timeout_ms()))
             : Duration(kSetupTimeDefault);
}

void Supervisor::start_setup() {
  setting_up_ = true;
  setup_by_ = clock_.now().boot + setup_time();
  start({{.kind = ProcessKind::Setup}});
}

void Supervisor::setup_ended(int code, int signal) {
  setting_up_ = false;
  setup_by_.reset();
  events_.add().mutable_setup_ended();
  if (phase_ != Phase::Running) return;  // its exec failed, or it was stopped
  const auto& setup = launch_.setup();
  // The user sees this sentence first, so it has the last line of the setup's log.
  const auto failed = [&](int error, const std::string& how, const std::string& help = {}) {
    const std::string line = last_line(setup.log());
    refuse(error, "running runtime.setup: " + how + (line.empty() ? "" : ": " + line) + help);
  };
  if (setup_timed_out_) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(setup_time()).count();
    return failed(ETIMEDOUT, "it did not end within " + std::to_string(seconds) + " s",
                  "; give it longer by runtime.setup.timeout");
  }
  // The setup or one of its commands was killed: lack of memory, or a person. Another start may
  // succeed (EAGAIN). That does not hold for an error that a command itself reports.
  if (signal != 0) return failed(EAGAIN, "it was ended by signal " + std::to_string(signal));
  const std::string command =
      code != 0 ? failed_command(setup.env_file(), *setup.argv().rbegin()) : "";
  const std::string status =
      (command.empty() ? "it" : "'" + command + "'") + " ended with status " + std::to_string(code);
  if (code > kShellSignalBase) return failed(EAGAIN, status);
  auto environment = read_setup_environment(setup.env_file());
  if (code == 0 && environment) {
    inherited_ = std::move(*environment);
  } else {
    // On a full disk its commands are not at fault, and the log may not have their messages.
    const std::string how = code != 0 ? status : environment.error().message;
    const std::string line = last_line(setup.log());
    const bool mentioned =
        line.contains("No space left on device") || line.contains("Disk quota exceeded");
    const bool full = is_full(run_.root());
    if (!mentioned && !full) return failed(EINVAL, how);
    return failed(ENOSPC, how, full ? "; the disk of '" + run_.root().string() + "' is full" : "");
  }
  if (clock_.now().boot >= lease_until_ && !lease_allows())
    return stop(StopRequested::WHY_ORPHANED, true);
  start_all();
}

void Supervisor::start_all() {
  std::vector<ProcessOf> wanted;
  wanted.reserve(static_cast<std::size_t>(launch_.auxiliaries_size() + launch_.ranks_size()));
  for (int i = 0; i < launch_.auxiliaries_size(); ++i)
    wanted.push_back({.kind = ProcessKind::Auxiliary, .index = static_cast<std::uint32_t>(i)});
  for (int i = 0; i < launch_.ranks_size(); ++i)
    wanted.push_back({.kind = ProcessKind::Rank, .index = static_cast<std::uint32_t>(i)});
  start(wanted);
  begin_scanning();
  inherited_ = {};
  secrets_ = {};  // nothing is started any more
}

void Supervisor::read_reports() {
  for (;;) {
    StartReport report;
    const ssize_t count = ::read(reports_.get(), &report, sizeof report);
    if (count == static_cast<ssize_t>(sizeof report)) {
      refuse(report.error, describe(report, launch_));
      continue;
    }
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    reports_.reset();
    if (!start_failed_ && !setting_up_) events_.add().mutable_started();
    return;
  }
}

void Supervisor::refuse(int error, std::string text) {
  if (!start_failed_) {  // only the first failure is recorded
    auto& failed = *events_.add().mutable_start_failed();
    failed.set_error(error);
    failed.set_text(std::move(text));
  }
  start_failed_ = true;
  stop(StopRequested::WHY_START_FAILED, true);
}

}  // namespace muster::worker
