// The test fixture for Watch: one or more run directories, and what the watch's callbacks have
// reported of each. gtest creates it for each test. Tests run on their own thread, the callbacks on
// the watch's thread.
#pragma once

#include <gtest/gtest.h>

#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "agent/logs/watch.h"
#include "tests/unit/agent_logs/temp_dir.h"

namespace muster::agent {

using namespace std::chrono_literals;

class WatchTest : public testing::Test {
 protected:
  struct Reports {
    std::vector<std::int64_t> first_steps;
    std::map<std::uint32_t, RankEnd> ends;
    int shards = 0, last_scans = 0;
  };

  void SetUp() override {
    std::filesystem::create_directories(run_dir_ / "logs");
    watching_.set_grammar("megatron");
    start();
  }
  void TearDown() override {
    if (watch_) watch_->stop();
  }
  void start() {
    const auto reports = [this](const RunKey& run, const std::function<void(Reports&)>& note) {
      const std::scoped_lock lock(mutex_);
      note(reports_[run]);
    };
    auto watch = Watch::start(
        options_,
        [this](std::function<void()> closure) {
          // Called on the watch's thread, because the tests have no loop.
          closure();
          const std::scoped_lock lock(mutex_);
          changed_.notify_all();
        },
        {.on_first_step =
             [reports](const RunKey& run, std::int64_t step) {
               reports(run, [step](Reports& to) { to.first_steps.push_back(step); });
             },
         .on_rank_end =
             [reports](const RunKey& run, RankNo rank, const RankEnd& end) {
               reports(run, [&](Reports& to) { to.ends[rank.value] = end; });
             },
         .on_shard_finished =
             [reports](const RunKey& run) { reports(run, [](Reports& to) { ++to.shards; }); },
         .on_last_scan =
             [reports](const RunKey& run) { reports(run, [](Reports& to) { ++to.last_scans; }); },
         .on_trouble =
             [this](const std::string& text) {
               const std::scoped_lock lock(mutex_);
               troubles_.push_back(text);
             }});
    ASSERT_TRUE(watch.has_value());
    watch_ = std::move(*watch);
    watch_->on_bytes([this] {
      const std::scoped_lock lock(mutex_);
      changed_.notify_all();
    });
  }
  template <class Condition>
  [[nodiscard]] bool eventually(Condition condition) {
    std::unique_lock lock(mutex_);
    const auto until = std::chrono::steady_clock::now() + 20s;
    while (std::chrono::steady_clock::now() < until) {
      lock.unlock();
      if (condition()) return true;
      lock.lock();
      changed_.wait_for(lock, 20ms);
    }
    return false;
  }
  // Waits until the reports of a run satisfy `good`.
  [[nodiscard]] bool comes(const RunKey& run, const std::function<bool(const Reports&)>& good) {
    return eventually([&] { return good(reports(run)); });
  }
  Reports reports(const RunKey& run) {
    const std::scoped_lock lock(mutex_);
    return reports_[run];
  }
  std::vector<std::string> troubles() {
    const std::scoped_lock lock(mutex_);
    return troubles_;
  }
  v1::AttemptReading reading(const RunKey& run) {
    Readings all = watch_->readings(0);
    for (v1::AttemptReading& one : all.readings) {
      if (one.job_id() == run.first.str()) return std::move(one);
    }
    return {};
  }
  void add(const std::vector<std::uint32_t>& ranks,
           const std::vector<std::string>& auxiliaries = {}) {
    auto added = watch_->add(run_, run_dir_, watching_, ranks, auxiliaries, {}, {});
    ASSERT_TRUE(added.has_value()) << added.error().message;
  }
  std::filesystem::path log(int rank) {
    return run_dir_ / "logs" / ("rank-" + std::to_string(rank) + ".log");
  }
  static std::string line(int step) {
    return " iteration " + std::to_string(step) +
           "/ 100 | consumed samples: 8 | elapsed time per iteration (ms): 12.5 | lm loss: 2.5E+00 "
           "| loss scale: 1.0 |\n";
  }

  test::TempDir dir_;
  const std::filesystem::path run_dir_ = dir_.path() / "job.1";
  const RunKey run_{JobId("job"), AttemptNo(1)};
  WatchOptions options_;
  v1::Watching watching_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<RunKey, Reports> reports_;
  std::vector<std::string> troubles_;
  // For the one run that most tests have:
  std::vector<std::int64_t>& first_steps_ = reports_[run_].first_steps;
  std::map<std::uint32_t, RankEnd>& ends_ = reports_[run_].ends;
  int& shards_ = reports_[run_].shards;
  std::unique_ptr<Watch> watch_;
};

// The least that the layout accepts as a whole archive: one directory entry and the end record.
inline void write_shard(const std::filesystem::path& dir) {
  std::filesystem::create_directories(dir);
  std::string entry("PK\x01\x02", 4), end("PK\x05\x06", 4);
  entry.resize(46);
  end.resize(22);
  end[8] = end[10] = 1;
  end[12] = 46;
  std::ofstream(dir / "model_optim_rng.pt", std::ios::binary) << entry << end;
}

// A whole checkpoint, and the tracker that seals it.
inline void write_checkpoint(const std::filesystem::path& save, int step) {
  const std::string digits = std::to_string(step);
  write_shard(save / ("iter_" + std::string(7 - digits.size(), '0') + digits) / "mp_rank_00");
  std::ofstream(save / "latest_checkpointed_iteration.txt") << step;
}

}  // namespace muster::agent
