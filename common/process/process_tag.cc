#include "common/process/process_tag.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>

#include "common/io/file.h"

namespace muster::process {
namespace {

constexpr std::uint64_t kKernelThread = 0x00200000;  // PF_KTHREAD
// An exec takes less time; the next scan finds a longer one.
constexpr long kScanAgainNs = 1'000'000;
constexpr long kClosedAgainNs = 250'000'000;  // a process may be closed to us for long

enum class Check : std::uint8_t { Carries, Clean, Empty, Closed, Unknown };

// Judges a process whose environment could not be read. Any other error (for example no free
// descriptor) proves nothing about who carries the tag, so it must never count as clean.
Check without_environment(int error) {
  if (error == ENOENT || error == ESRCH) return Check::Clean;
  return error == EACCES || error == EPERM ? Check::Closed : Check::Unknown;
}

// Checks whether "\0NAME=value\0" is in the environment. For Unknown, `error` has the reason.
// `room` is reused from process to process.
Check examine(int proc, const char* pid, std::string_view wanted, std::string& room, int& error) {
  const auto without = [&error](int number) {
    error = number;
    return without_environment(number);
  };
  char path[sizeof(dirent::d_name) + 16];
  std::snprintf(path, sizeof path, "%s/environ", pid);
  const io::UniqueFd fd(::openat(proc, path, O_RDONLY | O_CLOEXEC));
  if (!fd) return without(errno);
  std::size_t used = 0;
  for (;;) {
    if (room.size() - used < 4096) room.resize(room.size() * 2);
    const ssize_t count = ::read(fd.get(), room.data() + used, room.size() - used);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return without(errno);
    if (count == 0) break;
    used += static_cast<std::size_t>(count);
  }
  if (used == 0) return Check::Empty;
  const char* const end = room.data() + used;
  for (const char* at = room.data(); at < end;) {
    const auto* hit = static_cast<const char*>(
        ::memmem(at, static_cast<std::size_t>(end - at), wanted.data(), wanted.size()));
    if (hit == nullptr) return Check::Clean;
    const char* behind = hit + wanted.size();
    if ((hit == room.data() || hit[-1] == '\0') && (behind == end || *behind == '\0'))
      return Check::Carries;
    at = hit + 1;
  }
  return Check::Clean;
}

// An environment may read as empty for these reasons: a kernel thread, a zombie, a program started
// with none, or a process in the middle of its exec or exit. For the last two it is not known what
// they carry, even if the exec is over by now. Their environment must be read again.
bool started_with_none(const ProcStat& stat) {
  return stat.env_end != 0 && stat.env_start == stat.env_end;
}
bool in_between(const ProcStat& stat) {
  return (stat.flags & kKernelThread) == 0 && stat.state != 'Z' && stat.state != 'X' &&
         !started_with_none(stat);
}
// An exec first sets both ends of the environment to one address, because it does not know the
// second yet. For a moment that looks like an empty environment.
bool stays_with_none(pid_t pid) {
  constexpr int kChecks = 4;
  for (int check = 0; check < kChecks; ++check) {
    ::sched_yield();
    const auto stat = read_stat(pid);
    if (!stat || !started_with_none(*stat)) return false;
  }
  return true;
}

// Returns the real user. It does not use the owner of the /proc directory, which is root for a
// process that is not dumpable. Returns nothing if the process is gone or could not be read.
std::optional<uid_t> user_of(pid_t pid) {
  const auto status = io::read_file("/proc/" + std::to_string(pid) + "/status", 65536);
  const auto at = status ? status->find("\nUid:") : std::string::npos;
  if (at == std::string::npos) return std::nullopt;
  return static_cast<uid_t>(std::strtoul(status->c_str() + at + 5, nullptr, 10));
}

// Returns this process and its ancestors. Orphans of the run get one of these, or process 1, as
// their parent: a reaper of orphans is above the process that started the run.
std::set<pid_t> own_line() {
  std::set<pid_t> line{0, 1};
  for (pid_t pid = ::getpid(); line.insert(pid).second;) {
    const auto stat = read_stat(pid);
    if (!stat) break;
    pid = stat->parent;
  }
  return line;
}

// A session keeps its number as long as it has a member. The number of an empty session may belong
// to anybody.
enum class Led : std::uint8_t { Ours, Gone, Others };

Led led_by(const Family& family, const ProcStat& stat) {
  const auto leader = family.leaders.lower_bound({.pid = stat.session, .start_time = 0});
  if (leader == family.leaders.end() || leader->pid != stat.session) return Led::Others;
  const auto now = identify(stat.session);
  if (!now) return now.error().code == ErrorCode::NotFound ? Led::Gone : Led::Others;
  return family.leaders.contains(*now) ? Led::Ours : Led::Others;
}

bool in_session_of(const Family& family, const ProcStat& stat) {
  return led_by(family, stat) != Led::Others;
}

// A process that may be of the run and has emptied its environment (`env -i`). It is in a session
// that a rank leads or has led.
struct Emptied {
  ProcessId id;
  pid_t session = 0;
};
struct Emptieds {
  // `maybe`: the leader is gone, so other processes must show whose session it is
  std::vector<Emptied> surely, maybe;

  void examine(const Family& family, pid_t pid, const ProcStat& stat) {
    if (family.since == 0 || stat.start_time < family.since || stat.state == 'Z' ||
        stat.state == 'X')
      return;
    const Led led = led_by(family, stat);
    if (led == Led::Others || user_of(pid) != family.user) return;
    (led == Led::Ours ? surely : maybe)
        .push_back({.id = {.pid = pid, .start_time = stat.start_time}, .session = stat.session});
  }
  void settle(const Family& family, ProcessTagScan& scan) const {
    const auto take = [&scan](const Emptied& one) {
      scan.found.push_back(one.id);
      scan.sessions.insert(one.session);
    };
    for (const Emptied& one : surely) take(one);
    for (const Emptied& one : maybe) {
      if (family.known_sessions.contains(one.session) || scan.sessions.contains(one.session))
        take(one);
    }
  }
};

enum class Kin : std::uint8_t { Family, Stranger, Unknown };

Kin kin_of(const Family& family, const std::set<pid_t>& line, ProcStat stat) {
  if (family.since == 0) return Kin::Stranger;
  for (;;) {
    if (stat.start_time < family.since) return Kin::Stranger;
    if (in_session_of(family, stat)) return Kin::Family;
    if (line.contains(stat.parent)) return Kin::Unknown;
    auto above = read_stat(stat.parent);
    if (!above) return Kin::Unknown;  // gone; the next scan sees another parent
    stat = *above;
  }
}

}  // namespace

Result<ProcessTagScan> scan_process_tag(std::string_view name, std::string_view value,
                                        std::uint64_t since, const Family* family,
                                        const TagUsers& users) {
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(::opendir("/proc"), ::closedir);
  if (proc == nullptr) return fail_errno("opening '/proc'", errno);
  const std::string wanted = std::string(name) + "=" + std::string(value);
  std::string room(16384, '\0');
  ProcessTagScan scan;
  Emptieds emptieds;
  const pid_t own = ::getpid();
  std::optional<std::set<pid_t>> line;  // made only when needed, which is rare
  const auto kin_now = [&](const ProcStat& stat) {
    if (family == nullptr) return Kin::Stranger;
    if (!line) line = own_line();
    return kin_of(*family, *line, stat);
  };
  // Whether a process would be of the run if it carried the tag.
  const auto may_count = [&](pid_t pid, const ProcStat& stat) {
    const auto user = user_of(pid);
    return !user || !users.known || users.contain(*user) || kin_now(stat) == Kin::Family;
  };
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(proc.get());
    if (entry == nullptr && errno != 0) return fail_errno("listing '/proc'", errno);
    if (entry == nullptr) break;
    if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
    int error = 0;
    const Check check = examine(::dirfd(proc.get()), entry->d_name, wanted, room, error);
    if (family == nullptr && (check == Check::Clean || check == Check::Closed)) continue;
    const auto pid = static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10));
    if (pid == own) continue;
    const auto stat = read_stat(pid);
    if (!stat && stat.error().code == ErrorCode::NotFound) continue;
    if (!stat) return fail(Error(stat.error()));
    if (check == Check::Clean) {
      emptieds.examine(*family, pid, *stat);
      continue;
    }
    if (check == Check::Unknown) {
      if (!in_between(*stat) || stat->start_time < since) continue;
      return fail_errno(std::string("reading process ") + entry->d_name, error);
    }
    if (check == Check::Closed) {
      if (stat->state == 'Z' || stat->state == 'X') continue;
      const auto user = user_of(pid);
      if (!user) ++scan.unsettled;
      if (!user || *user != family->user) continue;
      const Kin kin = kin_now(*stat);
      if (kin == Kin::Family) scan.found.push_back({.pid = pid, .start_time = stat->start_time});
      if (kin == Kin::Unknown) scan.closed.push_back(pid);
    } else if (check == Check::Carries) {
      if (stat->state == 'Z' || stat->state == 'X') continue;
      const auto user = user_of(pid);
      if (!user) {
        ++scan.unsettled;
        continue;
      }
      if (!users.contain(*user) && kin_now(*stat) != Kin::Family) {
        if (!users.known) scan.closed.push_back(pid);
        continue;
      }
      scan.found.push_back({.pid = pid, .start_time = stat->start_time});
      scan.sessions.insert(stat->session);
    } else if (stat->start_time >= since &&
               (in_between(*stat) || (started_with_none(*stat) && !stays_with_none(pid)))) {
      if (may_count(pid, *stat)) ++scan.unsettled;
    } else if (family != nullptr) {
      emptieds.examine(*family, pid, *stat);
    }
  }
  if (family != nullptr) emptieds.settle(*family, scan);
  return scan;
}

Result<ProcessTagSweep> ProcessTagSweep::start(std::string name, std::string value,
                                               std::uint64_t since, std::optional<Family> family,
                                               TagUsers users) {
  io::UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  io::UniqueFd timer(::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!epoll || !timer) return fail_errno("starting a sweep", errno);
  epoll_event event{.events = EPOLLIN, .data = {.fd = timer.get()}};
  if (::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, timer.get(), &event) != 0)
    return fail_errno("starting a sweep", errno);
  return ProcessTagSweep(std::move(name), std::move(value), since, std::move(family), users,
                         std::move(epoll), std::move(timer));
}

Result<ProcessTagSweep::Progress> ProcessTagSweep::step() {
  std::uint64_t ticks = 0;
  (void)!::read(timer_.get(), &ticks, sizeof ticks);
  std::erase_if(waiting_, [](const io::UniqueFd& fd) {
    pollfd poll{.fd = fd.get(), .events = POLLIN, .revents = 0};
    return ::poll(&poll, 1, 0) == 1;
  });
  for (int clean = 0; clean < 2;) {
    auto scan = scan_process_tag(name_, value_, since_, family_ ? &*family_ : nullptr, users_);
    if (!scan) return fail(std::move(scan.error()));
    closed_ = std::move(scan->closed);
    if (family_) family_->known_sessions = std::move(scan->sessions);
    bool fresh = false;
    for (const auto& process : scan->found) {
      if (killed_.contains(process)) continue;  // it dies, and the sweep waits for it
      // Processes that left the session with it and are closed to us are judged by its own session.
      if (family_) family_->leaders.insert(process);
      auto pidfd = Pidfd::open(process);
      if (!pidfd && pidfd.error().code == ErrorCode::NotFound) continue;  // it exited by itself
      if (!pidfd) return fail(std::move(pidfd.error()));
      if (auto sent = pidfd->signal(SIGKILL); !sent && sent.error().code != ErrorCode::NotFound)
        return fail(std::move(sent.error()));
      killed_.insert(process);
      fresh = true;
      epoll_event event{.events = EPOLLIN, .data = {.fd = pidfd->fd()}};
      if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, pidfd->fd(), &event) != 0)
        return fail_errno("waiting for a killed process", errno);
      waiting_.emplace_back(pidfd->release());
    }
    if (fresh) {
      clean = 0;  // it may have forked meanwhile; the next scan finds that
      continue;
    }
    if (!scan->found.empty() || !waiting_.empty() || scan->unsettled > 0 || !closed_.empty()) {
      if (scan->unsettled > 0 || waiting_.empty()) {
        const bool soon = scan->unsettled > 0 || !scan->found.empty();
        const itimerspec again{
            .it_interval = {},
            .it_value = {.tv_sec = 0, .tv_nsec = soon ? kScanAgainNs : kClosedAgainNs}};
        ::timerfd_settime(timer_.get(), 0, &again, nullptr);
      }
      return Progress::Waiting;
    }
    ++clean;
  }
  return Progress::Done;
}

Result<std::uint32_t> sweep_process_tag(const std::string& name, const std::string& value,
                                        int timeout_ms, const TagUsers& users) {
  auto sweep = ProcessTagSweep::start(name, value, 0, std::nullopt, users);
  if (!sweep) return fail(std::move(sweep.error()));
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  for (;;) {
    auto progress = sweep->step();
    if (!progress) return fail(std::move(progress.error()));
    if (*progress == ProcessTagSweep::Progress::Done) return sweep->killed();
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
                          end - std::chrono::steady_clock::now())
                          .count();
    if (left <= 0) {
      std::string pids;
      if (const auto scan = scan_process_tag(name, value, 0, nullptr, users)) {
        for (const auto& process : scan->found) pids += " " + std::to_string(process.pid);
      }
      return fail(ErrorCode::TimedOut, "sweeping '" + value + "': still there after " +
                                           std::to_string(timeout_ms) + " ms:" + pids);
    }
    pollfd poll{.fd = sweep->fd(), .events = POLLIN, .revents = 0};
    ::poll(&poll, 1, static_cast<int>(left));
  }
}

}  // namespace muster::process
