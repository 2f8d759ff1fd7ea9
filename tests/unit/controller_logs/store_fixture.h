// A LogStore in a temporary directory of a test. gtest creates the fixture for each test. It runs
// on the test's thread.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "controller/logs/log_store.h"
#include "tests/unit/agent_logs/temp_dir.h"

namespace muster::logs {

class LogStoreTest : public testing::Test {
 protected:
  void SetUp() override { reopen(); }
  void reopen(std::uint64_t quota = 1ull << 30, std::uint64_t keep_free = 0) {
    store_.reset();
    auto store = LogStore::open(root(), quota, calls_, {.wanted = keep_free, .least = keep_free});
    ASSERT_TRUE(store.has_value()) << store.error().message;
    store_ = std::move(*store);
  }
  [[nodiscard]] std::filesystem::path root() const { return dir_.path() / "logs"; }
  [[nodiscard]] std::filesystem::path file(const std::string& extension) const {
    return root() / "job" / "1" / ("rank-0" + extension);
  }
  // Which of the files below `folder` this process has open.
  static std::vector<std::string> open_below(const std::filesystem::path& folder) {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code gone;
      std::string target = std::filesystem::read_symlink(entry.path(), gone).string();
      if (!gone && target.starts_with(folder.string() + "/")) found.push_back(std::move(target));
    }
    return found;
  }
  std::vector<LogKey> synced() {
    const Synced done = store_->sync();
    EXPECT_FALSE(done.error) << done.error->message;
    std::vector<LogKey> keys;
    for (const auto& [key, state] : done.logs) keys.push_back(key);
    return keys;
  }
  LogState append(std::uint64_t offset, std::string_view data, std::optional<Gap> gap = {}) {
    auto state = store_->append(key_, offset, data, gap);
    EXPECT_TRUE(state.has_value()) << state.error().message;
    return state.value_or(LogState{});
  }
  // The whole log, with gaps as "<from-to reason>".
  std::string whole(std::size_t most = 1000) {
    std::string text;
    for (std::uint64_t at = 0;;) {
      auto chunk = store_->read(key_, at, most);
      EXPECT_TRUE(chunk.has_value()) << chunk.error().message;
      if (!chunk || (chunk->data.empty() && !chunk->gap_before)) return text;
      if (chunk->gap_before)
        text += "<" + std::to_string(chunk->gap_before->from) + "-" +
                std::to_string(chunk->gap_before->to) + " " + chunk->gap_before->reason + ">";
      text += chunk->data;
      at = chunk->offset + chunk->data.size();
    }
  }
  test::TempDir dir_;
  SyncCalls calls_;  // for the next reopen()
  const LogKey key_{JobId("job"), AttemptNo(1), RankNo(0)};
  std::unique_ptr<LogStore> store_;
};

}  // namespace muster::logs
