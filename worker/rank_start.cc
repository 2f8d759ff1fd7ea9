#include "worker/rank_start.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

namespace muster::worker {
namespace {

constexpr int kStartFailedStatus = 127;

std::string_view name_of(const char* variable) {
  const std::string_view text(variable);
  return text.substr(0, text.find('='));
}

void put(std::vector<const char*>& environment, const char* variable) {
  const auto name = name_of(variable);
  for (auto& there : environment) {
    if (name_of(there) == name) {
      there = variable;
      return;
    }
  }
  environment.push_back(variable);
}

int open_log(const StartContext& context, const std::string& path) {
  const int log = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (log < 0) return errno;
  // So that the rank may open /dev/stdout again.
  if (context.launch->set_user() && ::fchown(log, context.launch->uid(), context.launch->gid()) != 0) return errno;
  if (::dup2(context.null_fd, 0) < 0 || ::dup2(log, 1) < 0 || ::dup2(log, 2) < 0) return errno;
  return 0;
}

int become_user(const rundir::v1::Launch& launch) {
  if (!launch.set_user()) return 0;
  const std::vector<gid_t> groups(launch.groups().begin(), launch.groups().end());
  if (::setgroups(groups.size(), groups.data()) != 0) return errno;
  if (::setresgid(launch.gid(), launch.gid(), launch.gid()) != 0) return errno;
  if (::setresuid(launch.uid(), launch.uid(), launch.uid()) != 0) return errno;
  return 0;
}

// The rank dies with its worker. The check is for a worker that died before the signal was armed; a change of user disarms it.
void die_with_worker(pid_t worker) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != worker) ::_exit(kStartFailedStatus);
}

// A cgroup that was removed meanwhile stops no start: the supervisor sees that too, and what the ranks leave behind is found by its environment.
int join(int cgroup_procs_fd) { return ::write(cgroup_procs_fd, "0", 1) < 0 && errno != ENODEV ? errno : 0; }

// A fork whose child begins in the cgroup; -1 where that cannot be done (before Linux 5.7, a seccomp filter, no right to), which a fork and
// joining the group then find out again with the error to report. Past glibc's fork: sound because the worker has one thread.
pid_t fork_into_cgroup(int cgroup_dir_fd) {
#if defined(__SANITIZE_THREAD__)
  (void)cgroup_dir_fd;
  return -1;  // its runtime has a thread of its own, and must see the fork
#else
  clone_args arguments{};
  arguments.flags = CLONE_INTO_CGROUP;
  arguments.exit_signal = SIGCHLD;
  arguments.cgroup = static_cast<std::uint64_t>(cgroup_dir_fd);
  return static_cast<pid_t>(::syscall(SYS_clone3, &arguments, sizeof arguments));
#endif
}

[[noreturn]] void become_rank(const StartContext& context, std::uint32_t index, bool in_cgroup) {
  const auto& rank = context.launch->ranks(static_cast<int>(index));
  const auto check = [&context, index](StartStage stage, int error) {
    if (error == 0) return;
    const StartReport report{.index = index, .stage = stage, .error = error};
    (void)!::write(context.report_fd, &report, sizeof report);
    ::_exit(kStartFailedStatus);
  };
  die_with_worker(context.worker);
  check(StartStage::Session, ::setsid() < 0 ? errno : 0);
  if (context.cgroup_procs_fd >= 0 && !in_cgroup) check(StartStage::Cgroup, join(context.cgroup_procs_fd));
  check(StartStage::Log, open_log(context, rank.log()));
  check(StartStage::User, become_user(*context.launch));
  die_with_worker(context.worker);
  if (!rank.cwd().empty()) check(StartStage::Directory, ::chdir(rank.cwd().c_str()) != 0 ? errno : 0);
  ::umask(022);

  std::vector<char*> argv;
  argv.reserve(static_cast<std::size_t>(rank.argv_size()) + 1);
  for (const auto& argument : rank.argv()) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  auto environment = environment_of(*context.launch, rank, context.cookie);
  environment.push_back(nullptr);

  if (context.nofile) (void)::setrlimit(RLIMIT_NOFILE, &*context.nofile);  // within what the worker may: cannot fail

  // Last, so that a stop that came meanwhile ends the child here and not in the rank's program. Dispositions are all default in the worker.
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execve(argv.front() == nullptr ? "" : argv.front(), argv.data(), const_cast<char**>(environment.data()));
  check(StartStage::Exec, errno);
  ::_exit(kStartFailedStatus);
}

}  // namespace

std::vector<const char*> environment_of(const rundir::v1::Launch& launch, const rundir::v1::RankLaunch& rank, const std::string& cookie) {
  std::vector<const char*> environment;
  environment.reserve(static_cast<std::size_t>(launch.env_size() + rank.env_size()) + 2);
  for (const auto& variable : launch.env()) put(environment, variable.c_str());
  for (const auto& variable : rank.env()) put(environment, variable.c_str());
  put(environment, cookie.c_str());
  return environment;
}

Result<pid_t> start_rank(const StartContext& context, std::uint32_t index) {
  pid_t pid = context.cgroup_dir_fd >= 0 ? fork_into_cgroup(context.cgroup_dir_fd) : -1;
  const bool in_cgroup = pid >= 0;
  if (!in_cgroup) pid = ::fork();
  if (pid == 0) become_rank(context, index, in_cgroup);
  if (pid < 0) {
    const int error = errno;
    return fail_errno("forking rank " + std::to_string(context.launch->ranks(static_cast<int>(index)).rank()) +
                          (error == EAGAIN ? " (the limit of processes: 'ulimit -u', or pids.max of the cgroup)" : ""),
                      error);
  }
  return pid;
}

std::string describe(const StartReport& report, const rundir::v1::Launch& launch) {
  const auto& rank = launch.ranks(static_cast<int>(report.index));
  std::string doing;
  switch (report.stage) {
    case StartStage::Session: doing = "making a session"; break;
    case StartStage::Cgroup: doing = "joining cgroup '" + launch.cgroup() + "'"; break;
    case StartStage::Log: doing = "opening log '" + rank.log() + "'"; break;
    case StartStage::User: doing = "becoming user " + std::to_string(launch.uid()); break;
    case StartStage::Directory: doing = "entering '" + rank.cwd() + "'"; break;
    case StartStage::Exec: doing = "executing '" + (rank.argv_size() > 0 ? rank.argv(0) : std::string()) + "'"; break;
  }
  std::string text = fail_errno(doing, report.error).error().message;
  if (report.stage == StartStage::Exec && report.error == ENOEXEC) text += "; a script needs a first line '#!INTERPRETER'";
  return text;
}

}  // namespace muster::worker
