#include "tests/unit/worker/run_under_test.h"

#include <poll.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <stdexcept>
#include <thread>

#include "common/io/file.h"
#include "common/io/unique_fd.h"
#include "common/process/process_tag.h"
#include "common/process/spawn.h"

namespace muster::worker {
namespace {

namespace fs = std::filesystem;

fs::path new_directory() {
  std::string pattern = (fs::temp_directory_path() / "worker.XXXXXX").string();
  const fs::path dir = ::mkdtemp(pattern.data());
  fs::permissions(dir, static_cast<fs::perms>(0755));  // ranks of other users must be able to enter
  return dir;
}

}  // namespace

fs::path RunUnderTest::program(const std::string& name) {
  return fs::read_symlink("/proc/self/exe").parent_path() / name;
}

RunUnderTest::RunUnderTest() : dir(new_directory()), run(dir / "job.1"), boot(*process::boot_id()) {
  // This process reaps what a killed worker leaves, whatever init this machine has.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  EXPECT_TRUE(rundir::make_run(run));
  launch.set_version(rundir::kVersion);
  launch.set_attempt(1);
  launch.set_boot_id(boot.str());
  launch.set_process_tag("test/" + dir.filename().string() + ".1@here");
  launch.set_stop_grace_ms(10000);
  launch.add_env("PATH=/usr/bin:/bin");
}

RunUnderTest::~RunUnderTest() {
  for (const pid_t worker : workers_) {
    if (worker <= 0) continue;
    ::kill(worker, SIGKILL);
    ::waitpid(worker, nullptr, 0);
  }
  const auto swept =
      process::sweep_process_tag(rundir::kProcessTagVariable, launch.process_tag(), kPatienceMs);
  EXPECT_TRUE(swept) << swept.error().message;
  while (::waitpid(-1, nullptr, WNOHANG) > 0) {
  }
  fs::remove_all(dir);
}

rundir::v1::RankLaunch& RunUnderTest::add(const std::vector<std::string>& argv) {
  const auto number = static_cast<std::uint32_t>(launch.ranks_size());
  auto& rank = *launch.add_ranks();
  rank.set_rank(number);
  for (const auto& argument : argv) rank.add_argv(argument);
  rank.add_env("RANK=" + std::to_string(number));
  rank.add_env("WORLD_SIZE=1000");
  rank.set_cwd(dir.string());
  rank.set_log(run.rank_log(number).string());
  return rank;
}

rundir::v1::RankLaunch& RunUnderTest::shell(const std::string& line) {
  return add({"/bin/sh", "-c", line});
}

rundir::v1::RankLaunch& RunUnderTest::stub(const std::vector<std::string>& arguments) {
  std::vector<std::string> argv = {program("stub_trainer").string()};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return add(argv);
}

void RunUnderTest::lease_for(std::chrono::milliseconds time) const {
  EXPECT_TRUE(rundir::write_lease(run, system_clock().now().boot + time, boot));
}

void RunUnderTest::start() {
  EXPECT_TRUE(rundir::write_launch(run, launch));
  if (!fs::exists(run.lease())) lease_for(std::chrono::minutes(10));
  spawn_worker();
}

void RunUnderTest::spawn_worker() {
  const auto worker = program("muster-worker").string();
  auto pid = process::spawn({.path = worker,
                             .argv = {worker, run.root().string()},
                             .env = {"PATH=/usr/bin:/bin", "LEAKS=no"},
                             .cwd = {},
                             .new_session = true});
  ASSERT_TRUE(pid) << pid.error().message;
  workers_.push_back(*pid);
}

void RunUnderTest::signal(int number) const { ASSERT_EQ(::kill(workers_.back(), number), 0); }

int RunUnderTest::wait_worker() {
  const auto pidfd = process::Pidfd::open_child(workers_.back());
  if (!pidfd) return -1;
  pollfd wait{.fd = pidfd->fd(), .events = POLLIN, .revents = 0};
  if (::poll(&wait, 1, kPatienceMs) != 1) return -1;
  int status = -1;
  ::waitpid(workers_.back(), &status, 0);
  workers_.back() = -1;
  return status;
}

RunUnderTest::Events RunUnderTest::events() const {
  rundir::EventReader reader(run.events());
  auto read = reader.read();
  EXPECT_TRUE(read);
  EXPECT_FALSE(reader.damaged());
  return read ? std::move(*read) : Events();
}

bool RunUnderTest::wait_in(const fs::path& where, const std::function<bool()>& holds) const {
  const io::UniqueFd notify(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  EXPECT_GE(::inotify_add_watch(notify.get(), where.c_str(),
                                IN_MODIFY | IN_CREATE | IN_MOVED_TO | IN_CLOSE_WRITE),
            0);
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatienceMs);
  while (!holds()) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
                          end - std::chrono::steady_clock::now())
                          .count();
    pollfd wait{.fd = notify.get(), .events = POLLIN, .revents = 0};
    if (left <= 0 || ::poll(&wait, 1, static_cast<int>(left)) != 1) return holds();
    char room[4096];
    (void)!::read(notify.get(), room, sizeof room);
  }
  return true;
}

bool RunUnderTest::wait_for(const std::function<bool(const Events&)>& holds) const {
  return wait_in(run.root(), [this, &holds] { return holds(events()); });
}

bool RunUnderTest::wait_for(rundir::v1::Event::WhatCase what, std::size_t count) const {
  return wait_for([what, count](const Events& all) {
    return static_cast<std::size_t>(std::ranges::count(all, what, &rundir::v1::Event::what_case)) >=
           count;
  });
}

bool RunUnderTest::wait_for_file(const fs::path& file) const {
  return wait_in(file.parent_path(), [&file] { return fs::exists(file); });
}

std::string RunUnderTest::log(std::uint32_t rank) const {
  const auto text = io::read_file(run.rank_log(rank), 1U << 20U);
  return text ? *text : "(" + text.error().message + ")";
}

std::vector<process::ProcessId> RunUnderTest::living() const {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatienceMs);
  for (;;) {
    auto scan = process::scan_process_tag(rundir::kProcessTagVariable, launch.process_tag());
    if (!scan) throw std::runtime_error(scan.error().message);
    if (scan->unsettled == 0 || std::chrono::steady_clock::now() >= deadline)
      return std::move(scan->found);
    std::this_thread::yield();
  }
}

std::string kinds(const RunUnderTest::Events& events) {
  std::string text;
  for (const auto& event : events) {
    switch (event.what_case()) {
      case rundir::v1::Event::kStarted: text += 'S'; break;
      case rundir::v1::Event::kStartFailed: text += 'F'; break;
      case rundir::v1::Event::kExited: text += 'E'; break;
      case rundir::v1::Event::kStopRequested: text += 'Q'; break;
      case rundir::v1::Event::kSwept: text += 'W'; break;
      case rundir::v1::Event::kRankStarted: text += 'R'; break;
      case rundir::v1::Event::kAuxiliaryStarted: text += 'C'; break;
      case rundir::v1::Event::kAuxiliaryExited: text += 'X'; break;
      case rundir::v1::Event::kSetupStarted: text += '('; break;
      case rundir::v1::Event::kSetupEnded: text += ')'; break;
      case rundir::v1::Event::kScriptRankSeen: text += 'N'; break;
      case rundir::v1::Event::kScriptLaunched: text += 'L'; break;
      case rundir::v1::Event::WHAT_NOT_SET: text += '?'; break;
    }
  }
  return text;
}

const rundir::v1::Exited* exit_of(const RunUnderTest::Events& events, std::uint32_t rank) {
  for (const auto& event : events) {
    if (event.has_exited() && event.exited().rank() == rank) return &event.exited();
  }
  return nullptr;
}

const rundir::v1::Event* first(const RunUnderTest::Events& events,
                               rundir::v1::Event::WhatCase what) {
  for (const auto& event : events) {
    if (event.what_case() == what) return &event;
  }
  return nullptr;
}

pid_t pid_of(const RunUnderTest::Events& events, std::uint32_t rank) {
  for (const auto& event : events) {
    if (event.has_rank_started() && event.rank_started().rank() == rank)
      return static_cast<pid_t>(event.rank_started().pid());
  }
  return 0;
}

}  // namespace muster::worker
