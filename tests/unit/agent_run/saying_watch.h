// A watch that reads nothing and does what the test says; a rank's end is never answered. A test
// owns it. It runs on the thread that calls it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/logs/watch.h"

namespace muster::agent {

class SayingWatch final : public Watch {
 public:
  void stop() override {}
  Result<void> add(const RunKey&, const std::filesystem::path&, const v1::Watching&,
                   const std::vector<std::uint32_t>&, const std::vector<std::string>&,
                   const std::map<std::uint32_t, std::string>&, const JobReach&) override {
    ++adds;
    if (refuse) return fail(*refuse, "no watch today");
    return {};
  }
  Result<void> follow(const RunKey&, const ScriptLog& log) override {
    followed.push_back(log.name);
    return {};
  }
  void rank_ended(const RunKey&, RankNo rank, bool failed) override { ended[rank.value] = failed; }
  void run_swept(const RunKey&) override { ++swept; }
  std::uint64_t bytes_read(const RunKey&) override { return bytes; }
  void remove(const RunKey&) override { ++removed; }
  bool logs_complete(const RunKey&) override { return false; }
  Readings readings(std::uint64_t) override { return {}; }
  std::vector<LogStatus> logs() override { return {}; }
  std::vector<LogName> logs_of(const RunKey&) override { return {}; }
  Result<LogPiece> read(const LogName&, std::uint64_t from, std::size_t) override {
    return LogPiece{.offset = from};
  }
  void controller_has(const LogName&, std::uint64_t, std::uint64_t, bool) override {}
  void on_bytes(std::function<void()>) override {}

  std::optional<ErrorCode> refuse;
  int adds = 0, swept = 0, removed = 0;
  std::uint64_t bytes = 0;
  std::map<std::uint32_t, bool> ended;
  std::vector<std::string> followed;
};

}  // namespace muster::agent
