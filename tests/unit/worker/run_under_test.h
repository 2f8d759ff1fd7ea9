// A run directory of a test, a launch record to fill in, and a real muster-worker on it. A test
// owns it, and its destructor kills by the process tag whatever is left. It runs on the test's
// thread.
//
// Waits use inotify on the directory, and pidfds, each with a deadline.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "common/process/pidfd.h"
#include "common/rundir/event_log.h"
#include "common/rundir/records.h"

namespace muster::worker {

inline constexpr int kPatienceMs = 20000;

class RunUnderTest {
 public:
  RunUnderTest();
  RunUnderTest(const RunUnderTest&) = delete;
  RunUnderTest& operator=(const RunUnderTest&) = delete;
  ~RunUnderTest();

  // Adds a rank that runs a shell line, or the stub trainer with these arguments.
  rundir::v1::RankLaunch& shell(const std::string& line);
  rundir::v1::RankLaunch& stub(const std::vector<std::string>& arguments);
  rundir::v1::RankLaunch& add(const std::vector<std::string>& argv);

  void lease_for(std::chrono::milliseconds time) const;
  // Writes `launch` (and a long lease if there is none), and spawns a worker; its pid is the last
  // of workers().
  void start();
  void spawn_worker();  // without changing the directory
  [[nodiscard]] const std::vector<pid_t>& workers() const { return workers_; }
  void signal(int number) const;
  // The exit status of the latest worker, as waitpid returns it; -1: it does not end.
  int wait_worker();

  using Events = std::vector<rundir::v1::Event>;
  // All events so far.
  [[nodiscard]] Events events() const;
  // Waits until the predicate is true for all events so far. Returns false if it is not within the
  // deadline.
  bool wait_for(const std::function<bool(const Events&)>& holds) const;
  bool wait_for(rundir::v1::Event::WhatCase what, std::size_t count = 1) const;
  // Waits until the file exists in the directory.
  [[nodiscard]] bool wait_for_file(const std::filesystem::path& file) const;
  [[nodiscard]] std::string log(std::uint32_t rank) const;
  // Living processes with the process tag. A process in the middle of its exec shows no tag, and
  // "started" does not mean that its exec is over. So the scan is repeated until there is no such
  // process.
  [[nodiscard]] std::vector<process::ProcessId> living() const;
  [[nodiscard]] std::size_t carriers() const { return living().size(); }

  [[nodiscard]] static std::filesystem::path program(const std::string& name);

  std::filesystem::path dir;  // for the test's own files
  rundir::RunLayout run;
  rundir::v1::Launch launch;
  BootId boot;

 private:
  bool wait_in(const std::filesystem::path& where, const std::function<bool()>& holds) const;
  std::vector<pid_t> workers_;
};

// Helpers for a list of events. Each kind has a letter: ( setup started, ) setup ended, C auxiliary
// process started, R rank started, S started, F start failed, E exited, X auxiliary process exited,
// N a script's rank seen, Q stop requested, W swept.
std::string kinds(const RunUnderTest::Events& events);  // "(.)CRRS.EEX.W"
const rundir::v1::Exited* exit_of(const RunUnderTest::Events& events, std::uint32_t rank);
const rundir::v1::Event* first(const RunUnderTest::Events& events,
                               rundir::v1::Event::WhatCase what);
pid_t pid_of(const RunUnderTest::Events& events, std::uint32_t rank);

}  // namespace muster::worker
