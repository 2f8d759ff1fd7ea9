#include "worker/process_start.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "common/io/beneath.h"
#include "common/process/cpu_list.h"
#include "common/rundir/layout.h"

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

// The process as in its launch record.
struct Program {
  const google::protobuf::RepeatedPtrField<std::string>& argv;
  const std::string& cwd;
  const std::string& log;
};

Program program_of(const rundir::v1::Launch& launch, const ProcessOf& process) {
  const auto index = static_cast<int>(process.index);
  switch (process.kind) {
    case ProcessKind::Rank: break;
    case ProcessKind::Auxiliary: {
      const auto& auxiliary = launch.auxiliaries(index);
      return {.argv = auxiliary.argv(), .cwd = auxiliary.cwd(), .log = auxiliary.log()};
    }
    case ProcessKind::Setup:
      return {
          .argv = launch.setup().argv(), .cwd = launch.setup().cwd(), .log = launch.setup().log()};
  }
  const auto& rank = launch.ranks(index);
  return {.argv = rank.argv(), .cwd = rank.cwd(), .log = rank.log()};
}

std::string name_of(const rundir::v1::Launch& launch, const ProcessOf& process) {
  switch (process.kind) {
    case ProcessKind::Rank: break;
    case ProcessKind::Auxiliary:
      return "auxiliary process '" + launch.auxiliaries(static_cast<int>(process.index)).name() +
             "'";
    case ProcessKind::Setup: return "runtime.setup";
  }
  return "rank " + std::to_string(launch.ranks(static_cast<int>(process.index)).rank());
}

// Opens a file that is not the run directory's: no agent asks for one. It must exist, no part of
// its path is a link, and it stays whose it is. A pipe is waited for, as a file system that hangs
// would be. Returns 0 or errno.
int open_outside(const std::string& path, int flags, io::UniqueFd& file) {
  const io::UniqueFd root(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root) return errno;
  const io::UniqueFd place =
      io::open_beneath(root.get(), std::filesystem::path(path).relative_path(), O_PATH);
  if (!place) return errno;
  const std::string way = "/proc/self/fd/" + std::to_string(place.get());
  file.reset(::open(way.c_str(), (flags & ~(O_CREAT | O_TRUNC)) | O_CLOEXEC));
  return file ? 0 : errno;
}

// Opens a file of the run directory, also in `logs` below it. A process of the job may have put
// anything in the place of each part: nothing is followed, and only a regular file with one name is
// opened. Then the job's user may use the file as its mode allows, through /proc/self/fd, though
// its directory is closed to him. Returns 0 or errno.
int open_for_job(const StartContext& context, const std::string& path, int flags,
                 io::UniqueFd& file) {
  const auto below = std::filesystem::path(path).lexically_relative(context.run_dir);
  if (below.empty() || *below.begin() == "..") return open_outside(path, flags, file);
  // O_TRUNC would empty a file before it is known which one it is
  file = io::open_beneath(context.run_dir_fd, below, flags & ~O_TRUNC, 0600);
  struct stat info{};
  if (!file || ::fstat(file.get(), &info) != 0) return errno;
  if (!S_ISREG(info.st_mode) || info.st_nlink != 1) return ELOOP;
  // That nothing had to be waited for was only for the opening.
  if (::fcntl(file.get(), F_SETFL, flags & O_APPEND) != 0) return errno;
  if ((flags & O_TRUNC) != 0 && ::ftruncate(file.get(), 0) != 0) return errno;
  const auto& launch = *context.launch;
  return launch.set_user() && ::fchown(file.get(), launch.uid(), launch.gid()) != 0 ? errno : 0;
}

int open_log(const StartContext& context, const std::string& path) {
  io::UniqueFd log;
  if (const int error = open_for_job(context, path, O_WRONLY | O_CREAT | O_APPEND, log); error != 0)
    return error;
  if (::dup2(context.null_fd, 0) < 0 || ::dup2(log.get(), 1) < 0 || ::dup2(log.get(), 2) < 0)
    return errno;
  return 0;
}

// The setup's script and the file for its environment. Their descriptors are above the numbers that
// scripts use themselves. The functions return 0 or errno.
struct SetupFiles {
  std::string script;       // a path that the user may open
  std::string environment;  // NAME=path
};
int open_for_setup(const StartContext& context, const std::string& path, int flags,
                   std::string& way) {
  constexpr int kBeyondScripts = 230;
  io::UniqueFd file;
  if (const int error = open_for_job(context, path, flags, file); error != 0) return error;
  int kept = ::fcntl(file.get(), F_DUPFD, kBeyondScripts);
  if (kept < 0) kept = ::fcntl(file.get(), F_DUPFD, 3);
  if (kept < 0) return errno;
  way = "/proc/self/fd/" + std::to_string(kept);
  return 0;
}
int open_setup_files(const StartContext& context, SetupFiles& files) {
  const auto& setup = context.launch->setup();
  if (setup.argv().empty()) return EINVAL;
  if (const int error = open_for_setup(context, *setup.argv().rbegin(), O_RDONLY, files.script);
      error != 0)
    return error;
  std::string way;
  if (const int error = open_for_setup(context, setup.env_file(), O_RDWR | O_CREAT | O_TRUNC, way);
      error != 0)
    return error;
  files.environment = std::string(rundir::kSetupEnvironmentVariable) + "=" + way;
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

// The rank dies with its worker. The check handles a worker that died before the signal was armed.
// A change of user disarms the signal.
void die_with_worker(pid_t worker) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != worker) ::_exit(kStartFailedStatus);
}

// A cgroup that was removed meanwhile stops no start. The supervisor notices that too, and
// processes that ranks leave are found by their environment.
int join(int cgroup_procs_fd) {
  return ::write(cgroup_procs_fd, "0", 1) < 0 && errno != ENODEV ? errno : 0;
}

// Forks a child that starts in the cgroup. Returns -1 if that is impossible (before Linux 5.7, a
// seccomp filter, missing rights). A fork and a later join then find the error to report. This
// bypasses glibc's fork, which is sound because the worker has one thread.
pid_t fork_into_cgroup(int cgroup_dir_fd) {
#if defined(__SANITIZE_THREAD__)
  (void)cgroup_dir_fd;
  return -1;  // the sanitizer's runtime has a thread of its own and must see the fork
#else
  clone_args arguments{};
  arguments.flags = CLONE_INTO_CGROUP;
  arguments.exit_signal = SIGCHLD;
  arguments.cgroup = static_cast<std::uint64_t>(cgroup_dir_fd);
  return static_cast<pid_t>(::syscall(SYS_clone3, &arguments, sizeof arguments));
#endif
}

// Like execvp, but with the PATH of the environment that is passed. Returns errno. A name with a
// slash is a path and is used directly.
int execute(std::vector<char*>& argv, std::vector<const char*>& environment) {
  const auto try_path = [&](const char* path) {
    ::execve(path, argv.data(), const_cast<char**>(environment.data()));
    return errno;
  };
  const std::string name = argv.front() == nullptr ? "" : argv.front();
  if (name.empty() || name.find('/') != std::string::npos) return try_path(name.c_str());
  std::string_view path;
  for (const char* variable : environment) {
    if (variable != nullptr && name_of(variable) == "PATH")
      path = std::string_view(variable).substr(5);
  }
  int error = ENOENT;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    std::string candidate =
        end == begin ? "./" + name : std::string(path.substr(begin, end - begin)) + "/" + name;
    argv.front() = candidate.data();
    const int failed = try_path(candidate.c_str());
    if (failed == EACCES) error = EACCES;
    if (failed != EACCES && failed != ENOENT && failed != ENOTDIR && failed != ELOOP &&
        failed != ENAMETOOLONG)
      return failed;
    begin = end + 1;
  }
  return error;
}

// Returns PATH=... with the launcher shim first, whatever the setup or the job has set; empty:
// there is no shim.
std::string path_with_shim(const rundir::v1::Launch& launch,
                           const std::vector<const char*>& environment) {
  if (launch.shim_dir().empty()) return {};
  std::string path = "PATH=" + launch.shim_dir();
  for (const char* variable : environment) {
    if (name_of(variable) == "PATH") path += ":" + std::string(variable).substr(5);
  }
  return path;
}

// Binds the rank to its processors. If the setup left a variable by which another library binds its
// threads, or the kernel refuses, the rank runs where the worker may. Returns the result as a
// variable; empty: not bound.
std::string bind_to(const std::string& cpus, const std::vector<const char*>& environment) {
  if (cpus.empty()) return {};
  for (const char* variable : environment) {
    const auto name = name_of(variable);
    if (name == "CPU_AFFINITY_CONF" || name == "GOMP_CPU_AFFINITY" || name == "KMP_AFFINITY")
      return {};
  }
  const auto list = process::parse_cpu_list(cpus);
  return list && process::run_on_cpus(*list) == 0 ? "MUSTER_CPUS=" + cpus : std::string();
}

[[noreturn]] void become(const StartContext& context, const ProcessOf& process, bool in_cgroup) {
  const Program program = program_of(*context.launch, process);
  const auto check = [&context, &process](StartStage stage, int error) {
    if (error == 0) return;
    const StartReport report{.process = process, .stage = stage, .error = error};
    (void)!::write(context.report_fd, &report, sizeof report);
    ::_exit(kStartFailedStatus);
  };
  die_with_worker(context.worker);
  check(StartStage::Session, ::setsid() < 0 ? errno : 0);
  if (context.cgroup_procs_fd >= 0 && !in_cgroup)
    check(StartStage::Cgroup, join(context.cgroup_procs_fd));
  check(StartStage::Log, open_log(context, program.log));
  SetupFiles files;
  if (process.kind == ProcessKind::Setup)
    check(StartStage::Script, open_setup_files(context, files));
  check(StartStage::User, become_user(*context.launch));
  die_with_worker(context.worker);
  if (!program.cwd.empty())
    check(StartStage::Directory, ::chdir(program.cwd.c_str()) != 0 ? errno : 0);
  ::umask(022);

  std::vector<char*> argv;
  argv.reserve(static_cast<std::size_t>(program.argv.size()) + 1);
  for (const auto& argument : program.argv) argv.push_back(const_cast<char*>(argument.c_str()));
  auto environment = environment_of(context, process);
  if (process.kind == ProcessKind::Setup) {
    argv.back() = files.script.data();
    put(environment, files.environment.c_str());
  }
  const std::string path = process.kind == ProcessKind::Rank
                               ? path_with_shim(*context.launch, environment)
                               : std::string();
  if (!path.empty()) put(environment, path.c_str());
  const std::string bound =
      process.kind == ProcessKind::Rank
          ? bind_to(context.launch->ranks(static_cast<int>(process.index)).cpus(), environment)
          : std::string();
  if (!bound.empty()) put(environment, bound.c_str());
  argv.push_back(nullptr);
  environment.push_back(nullptr);

  // within the worker's limit: cannot fail
  if (context.nofile) (void)::setrlimit(RLIMIT_NOFILE, &*context.nofile);

  // The last step: a stop that came meanwhile ends the child here and not in the rank's program.
  // All dispositions are default in the worker.
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  check(StartStage::Exec, execute(argv, environment));
  ::_exit(kStartFailedStatus);
}

}  // namespace

std::vector<const char*> environment_of(const StartContext& context, const ProcessOf& process) {
  const rundir::v1::Launch& launch = *context.launch;
  const bool own = process.kind == ProcessKind::Auxiliary;
  const auto& first =
      own ? launch.auxiliaries(static_cast<int>(process.index)).env() : launch.env();
  const std::size_t inherited = context.inherited == nullptr ? 0 : context.inherited->size();
  std::vector<const char*> environment;
  const rundir::v1::RankLaunch* rank =
      process.kind == ProcessKind::Rank ? &launch.ranks(static_cast<int>(process.index)) : nullptr;
  environment.reserve(
      static_cast<std::size_t>(first.size() + (rank == nullptr ? 0 : rank->env_size())) +
      inherited + 3);
  for (const auto& variable : first) put(environment, variable.c_str());
  if (context.secrets != nullptr)
    for (const auto& variable : *context.secrets) put(environment, variable.c_str());
  if (rank != nullptr) {
    for (const auto& variable : rank->env()) put(environment, variable.c_str());
  }
  put(environment, context.process_tag.c_str());
  if (inherited == 0) return environment;
  const auto set = static_cast<std::ptrdiff_t>(environment.size());
  for (const std::string& variable : *context.inherited) {
    const auto name = name_of(variable.c_str());
    if (std::none_of(environment.begin(), environment.begin() + set,
                     [name](const char* there) { return name_of(there) == name; }))
      environment.push_back(variable.c_str());
  }
  return environment;
}

Result<pid_t> start_process(const StartContext& context, const ProcessOf& process) {
  pid_t pid = context.cgroup_dir_fd >= 0 ? fork_into_cgroup(context.cgroup_dir_fd) : -1;
  const bool in_cgroup = pid >= 0;
  if (!in_cgroup) pid = ::fork();
  if (pid == 0) become(context, process, in_cgroup);
  if (pid < 0) {
    const int error = errno;
    return fail_errno(
        "forking " + name_of(*context.launch, process) +
            (error == EAGAIN ? " (the limit of processes: 'ulimit -u', or pids.max of the cgroup)"
                             : ""),
        error);
  }
  return pid;
}

std::string describe(const StartReport& report, const rundir::v1::Launch& launch) {
  const Program program = program_of(launch, report.process);
  const std::string first = program.argv.empty() ? std::string() : program.argv.Get(0);
  std::string doing;
  switch (report.stage) {
    case StartStage::Session: doing = "making a session"; break;
    case StartStage::Cgroup: doing = "joining cgroup '" + launch.cgroup() + "'"; break;
    case StartStage::Log: doing = "opening log '" + program.log + "'"; break;
    case StartStage::Script: doing = "opening its script and the file of its environment"; break;
    case StartStage::User: doing = "becoming user " + std::to_string(launch.uid()); break;
    case StartStage::Directory: doing = "entering '" + program.cwd + "'"; break;
    case StartStage::Exec: doing = "executing '" + first + "'"; break;
  }
  if (report.process.kind != ProcessKind::Rank)
    doing = "starting " + name_of(launch, report.process) + ": " + doing;
  std::string text = fail_errno(doing, report.error).error().message;
  if (report.stage != StartStage::Exec) return text;
  if (report.error == ENOEXEC) text += "; a script needs a first line '#!INTERPRETER'";
  // The kernel reports the same error for a missing interpreter as for a missing file.
  if (report.error == ENOENT && first.starts_with('/') && ::access(first.c_str(), F_OK) == 0)
    text += "; the file is there: the interpreter that its first line names is not";
  if (first.find('/') == std::string::npos)
    text += launch.has_setup() ? "; it was looked for on the PATH that runtime.setup left"
                               : "; it was looked for on the container's PATH";
  return text;
}

}  // namespace muster::worker
