// The test fixture for LogFile. gtest creates it for each test. It runs on the test's thread.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "agent/logs/log_file.h"
#include "tests/unit/agent_logs/temp_dir.h"

namespace muster::agent {

// One rank's log, an agent that can be restarted, and a controller that keeps what it gets.
class LogFileTest : public testing::Test {
 protected:
  void restart() {
    file_.reset();
    auto opened = LogFile::open(log_, cursor_, budget_);
    ASSERT_TRUE(opened.has_value());
    file_ = std::move(*opened);
  }
  void parse() {
    char buffer[700];
    for (;;) {
      auto piece = file_->parse_next(buffer);
      ASSERT_TRUE(piece.has_value()) << piece.error().message;
      if (piece->at_end) return;
    }
  }
  // As the log link does: asks what the controller has, then reads from there.
  void connect() { file_->controller_has(end_, end_); }
  void ship(std::size_t most = 1000, bool ended = false) {
    for (;;) {
      auto piece = file_->read(end_, most, ended);
      ASSERT_TRUE(piece.has_value()) << piece.error().message;
      if (piece->loss) gaps_.push_back({end_, piece->offset, piece->loss->reason});
      if (piece->data.empty()) return;
      kept_ += piece->data;
      end_ = piece->offset + piece->data.size();
    }
  }

  struct Gap {
    std::uint64_t from, to;
    std::string reason;
    bool operator==(const Gap&) const = default;
  };
  test::TempDir dir_;
  const std::filesystem::path log_ = dir_.path() / "rank-0.log",
                              cursor_ = dir_.path() / "rank-0.cursor";
  std::shared_ptr<io::DescriptorBudget> budget_;  // null: no limit
  std::unique_ptr<LogFile> file_;
  std::uint64_t end_ = 0;  // end of the controller's copy
  std::string kept_;
  std::vector<Gap> gaps_;
};

}  // namespace muster::agent
