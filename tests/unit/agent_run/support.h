// Helpers for tests of agent/run: a temporary state directory, a loop, and waits for what a run
// should become. A test owns them. Helpers run on the test's thread, the Host on the thread of the
// loop.
//
// Waits have a deadline, and the host wakes them.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "agent/core/run_phase.h"
#include "agent/run/host.h"
#include "agent/run/run_view.h"
#include "agent/run/state_dir.h"
#include "common/async/loop.h"
#include "common/process/identity.h"
#include "common/process/process_tag.h"
#include "tests/support/on_loop.h"

namespace muster::agent {

class TempDir {
 public:
  TempDir() {
    std::string pattern = (std::filesystem::temp_directory_path() / "muster-host-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  std::filesystem::path write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name) << text;
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

inline std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// In the same directory as the test's own binary.
inline std::filesystem::path worker_binary() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "muster-worker";
}

// Unique for this process. Another test binary that runs in parallel sweeps by the process tag, and
// a process tag consists of cluster, job, attempt and node.
inline const ClusterId kCluster{"c-test-" + std::to_string(::getpid())};
inline const NodeName kNode{"n1"};
inline const RunKey kRun{JobId("0123456789abc"), AttemptNo(1)};

// One incarnation of an agent's host on a state directory. Every test ends with no process left
// that has its process tag.
class HostIncarnation {
 public:
  explicit HostIncarnation(const std::filesystem::path& state_dir,
                           const std::function<void(HostOptions&)>& change = {})
      : loop_("test-host") {
    auto state = StateDir::open(state_dir);
    EXPECT_TRUE(state) << (state ? "" : state.error().message);
    state_ = std::make_unique<StateDir>(std::move(*state));
    HostOptions options{
        .layout = state_->layout(),
        .self = {.instance = state_->identity().instance, .boot_id = *process::boot_id()},
        .node = kNode,
        .cluster = kCluster,
        .worker = worker_binary(),
        .devices = {0, 1, 2, 3},
        .min_free_bytes = 1};
    if (change) change(options);
    on_loop([&] {
      auto host = Host::open(loop_, std::move(options),
                             {.changed =
                                  [this](const RunKey& run) {
                                    check_phase(run);
                                    notify();
                                  },
                              .trouble =
                                  [this](const std::string& text) {
                                    const std::lock_guard lock(mutex_);
                                    troubles_.push_back(text);
                                  }});
      ASSERT_TRUE(host) << host.error().message;
      host_ = std::move(*host);
    });
  }
  ~HostIncarnation() {
    on_loop([&] { host_.reset(); });
    loop_.stop();
  }
  HostIncarnation(const HostIncarnation&) = delete;
  HostIncarnation& operator=(const HostIncarnation&) = delete;

  void on_loop(const std::function<void()>& task) { test::run_on(loop_, task); }
  void perform(const Action& action) {
    on_loop([&] {
      host_->perform(action);
      if (const auto* forget = std::get_if<ForgetRun>(&action)) phases_.erase(forget->run);
    });
    notify();
  }
  RunSeen seen(const RunKey& run = kRun) {
    RunSeen copy;
    on_loop([&] {
      if (const RunSeen* found = host_->seen(run)) copy = *found;
    });
    return copy;
  }
  bool holds(const RunKey& run = kRun) {
    bool found = false;
    on_loop([&] { found = host_->seen(run) != nullptr; });
    return found;
  }
  // Waits until `good` or the deadline, and checks again after every change.
  bool wait_for(const std::function<bool(const RunSeen&)>& good,
                std::chrono::seconds most = std::chrono::seconds(10), const RunKey& run = kRun) {
    const auto deadline = std::chrono::steady_clock::now() + most;
    for (;;) {
      std::uint64_t seen_changes = 0;
      {
        const std::lock_guard lock(mutex_);
        seen_changes = changes_;
      }
      if (good(seen(run))) return true;
      std::unique_lock lock(mutex_);
      if (!changed_.wait_until(lock, deadline, [&] { return changes_ != seen_changes; }))
        return false;
    }
  }
  std::vector<std::string> troubles() {
    const std::lock_guard lock(mutex_);
    return troubles_;
  }
  Host& host() { return *host_; }
  StateDir& state() { return *state_; }
  [[nodiscard]] std::filesystem::path run_dir(const RunKey& run = kRun) const {
    return state_->layout().run(run.first, run.second);
  }
  // What the run's directory shows now.
  [[nodiscard]] std::unique_ptr<RunView> read_run(const RunKey& run = kRun) const {
    auto view = std::make_unique<RunView>(rundir::RunLayout(run_dir(run)), *process::boot_id());
    EXPECT_TRUE(view->refresh());
    return view;
  }

 private:
  // On the loop. No run does what the table of moves does not have.
  void check_phase(const RunKey& run) {
    const RunSeen* seen = host_ ? host_->seen(run) : nullptr;
    if (seen == nullptr) return;
    const RunPhase now = phase_of(*seen, *process::boot_id());
    const auto [at, first] = phases_.try_emplace(run, now);
    EXPECT_TRUE(may_follow(at->second, now)) << to_string(at->second) << " -> " << to_string(now);
    at->second = now;
  }
  void notify() {
    {
      const std::lock_guard lock(mutex_);
      ++changes_;
    }
    changed_.notify_all();
  }

  async::Loop loop_;
  std::unique_ptr<StateDir> state_;
  std::unique_ptr<Host> host_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t changes_ = 0;
  std::vector<std::string> troubles_;
  std::map<RunKey, RunPhase> phases_;  // only the loop uses it
};

// A launch of `ranks` shells that run `script`; the run's working directory is `cwd`.
inline v1::NodeLaunch shell_launch(const std::filesystem::path& cwd, const std::string& script,
                                   std::uint32_t ranks = 1) {
  v1::NodeLaunch launch;
  launch.set_job_id(kRun.first.str());
  launch.set_attempt(kRun.second.value);
  launch.set_boot_id(process::boot_id()->str());
  launch.mutable_orphan_grace()->set_seconds(60);
  launch.mutable_stop_grace()->set_seconds(2);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    v1::RankProcess* process = launch.add_ranks();
    process->set_rank(rank);
    process->set_cwd(cwd.string());
    for (const char* word : {"sh", "-c"}) process->add_argv(word);
    process->add_argv(script);
    (*process->mutable_env())["RANK"] = std::to_string(rank);
    process->add_devices(rank % 4);
  }
  return launch;
}

inline std::string run_process_tag() {
  return rundir::process_tag(kCluster, kRun.first, kRun.second, kNode);
}
// How many processes of the run live. A process in the middle of its exec shows no process tag, and
// "started" does not mean that its exec is over. So the scan is repeated until there is no such
// process.
inline std::size_t living() {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  for (;;) {
    const auto scan = process::scan_process_tag(rundir::kProcessTagVariable, run_process_tag());
    if (!scan) throw std::runtime_error(scan.error().message);
    if (scan->unsettled == 0 || std::chrono::steady_clock::now() >= deadline)
      return scan->found.size();
    std::this_thread::yield();
  }
}

}  // namespace muster::agent
