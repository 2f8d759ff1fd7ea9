#include "agent/run/run_sweep.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "common/rundir/records.h"

namespace muster::agent {
namespace {

constexpr Duration kGroupCheck = std::chrono::milliseconds(50);

}  // namespace

RunSweep::RunSweep(async::Loop& loop, Options options, Callbacks callbacks)
    : loop_(loop), options_(std::move(options)), callbacks_(std::move(callbacks)) {}

void RunSweep::trouble(const std::string& doing, const std::string& what) const {
  callbacks_.trouble(fmt::format("{}: {}", doing, what));
}

void RunSweep::end(bool swept) {
  doing_.emplace<std::monostate>();
  const auto ended = callbacks_.ended;  // it may destroy this object
  ended(swept);
}

void RunSweep::begin() {
  loop_.assert_on();
  // With a group no process must be guessed.
  const bool group = !options_.group.empty() && ::access(options_.group.c_str(), F_OK) == 0;
  auto sweep = process::ProcessTagSweep::start(
      rundir::kProcessTagVariable, options_.process_tag, options_.since,
      group ? std::nullopt : options_.family, options_.users);
  if (!sweep) {
    trouble(fmt::format("sweeping run '{}'", options_.name), sweep.error().message);
    return end(false);
  }
  auto& killing = doing_.emplace<Killing>(Killing{.sweep = std::move(*sweep), .ready = {}});
  killing.ready =
      std::make_unique<async::Readable>(loop_, "sweep", killing.sweep.fd(), [this] { step(); });
  step();
}

void RunSweep::step() {
  auto& killing = std::get<Killing>(doing_);
  const std::string doing = fmt::format("sweeping run '{}'", options_.name);
  // The group comes first: it also has the processes that have emptied their environment.
  std::optional<process::Cgroup> group;
  struct stat info{};
  if (!options_.group.empty() && ::stat(options_.group.c_str(), &info) == 0) {
    if (auto opened = process::Cgroup::make(options_.group)) group = std::move(*opened);
  }
  if (group) {
    if (auto killed = group->kill(); !killed) trouble(doing, killed.error().message);
  }
  auto progress = killing.sweep.step();
  if (!progress) {
    trouble(doing, progress.error().message);
    return end(false);
  }
  tell_what_blocks(killing.sweep);
  if (*progress != process::ProcessTagSweep::Progress::Done) return;
  if (group) {
    const auto empty = group->empty();
    if (empty && !*empty) return wait_for_group(std::move(*group));
  }
  if (begin_removal()) return;
  end(true);
}

void RunSweep::tell_what_blocks(const process::ProcessTagSweep& sweep) {
  std::string pids;
  for (const pid_t pid : sweep.waits_for())
    pids += fmt::format("{}{}", pids.empty() ? "" : ", ", pid);
  if (pids.empty() || !blocked_.first(pids)) return;
  if (!options_.users.known)
    return trouble(
        fmt::format("sweeping run '{}'", options_.name),
        fmt::format("whether it has left process {} cannot be determined: it has the run's process "
                    "tag, it is of another user, and the launch record that has the run's user is "
                    "missing or damaged; it is not killed, and the run is swept when it has ended; "
                    "kill it if it is the job's",
                    pids));
  trouble(fmt::format("sweeping run '{}'", options_.name),
          fmt::format("whether it has left process {} cannot be determined: of this user, started "
                      "after the run, and closed to us (not dumpable); the run is swept when it "
                      "has ended; kill it if it is the job's",
                      pids));
}

// Processes without the process tag die in the group shortly after the kill. The group's events
// file reports when the group is empty, but not when somebody has removed it.
void RunSweep::wait_for_group(process::Cgroup group) {
  auto& waiting = doing_.emplace<GroupEmpties>(
      GroupEmpties{.group = std::move(group),
                   .changed = {},
                   .check = std::make_unique<async::Timer>(loop_, "check a group")});
  waiting.changed = std::make_unique<async::Readable>(
      loop_, "sweep", waiting.group.events_fd(), [this] { begin(); },
      async::Readable::Ready::Priority);
  waiting.check->arm(kGroupCheck, [this] { check_group(); });
}

void RunSweep::check_group() {
  auto& waiting = std::get<GroupEmpties>(doing_);
  if (waiting.group.gone()) return begin();
  waiting.check->arm(kGroupCheck, [this] { check_group(); });
}

// The removal kills what is still in the container's own groups.
bool RunSweep::begin_removal() {
  if (!options_.container || std::exchange(container_removed_, true)) return false;
  const std::string doing = fmt::format("removing container '{}'", options_.container->name());
  auto removal =
      ContainerRemoval::start(loop_, *options_.container, [this, doing](const std::string& met) {
        if (!met.empty()) trouble(doing, met + "; no process of its run is left");
        begin();
      });
  if (!removal) {
    trouble(doing, removal.error().message + "; no process of its run is left");
    return false;
  }
  doing_.emplace<Removing>(std::move(*removal));
  return true;
}

}  // namespace muster::agent
