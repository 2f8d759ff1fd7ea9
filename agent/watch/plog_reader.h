// What a rank's process log (plog_tree.h) tells of its end: reads what is new of its files now and
// then, and keeps the best line of the last minutes. What a healthy training once complained of
// must not be what an end long after it is put down to. Belongs to the watch's thread alone;
// remembers nothing over lives of the agent: a later one reads again what is there.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "agent/watch/evidence.h"
#include "agent/watch/plog_tree.h"
#include "common/base/time.h"

namespace muster::agent {

class PlogReader {
 public:
  static constexpr std::size_t kFilesRead = 32;  // the newest ones, in one go
  // of one file: what is further behind its end is passed over
  static constexpr std::uint64_t kBehindMost = 1 << 20;
  static constexpr std::uint64_t kBehindAtEnd = 256 << 10;  // somebody waits
  // as many times that of all files together, the newest first
  static constexpr std::uint64_t kFilesBehind = 4;
  static constexpr Duration kLineLives = std::chrono::minutes(10);

  explicit PlogReader(std::filesystem::path dir) : tree_(std::move(dir)) {}

  // `ended`: the rank's process is gone; an unfinished line is a line.
  void read(std::span<char> buffer, const Now& now, bool ended);
  // The line, its file's name in front; rank 0: nothing that counts.
  [[nodiscard]] FoundEvidence evidence(BootTime now) const;
  std::uint64_t trim(std::uint64_t cap) const { return tree_.trim(cap); }

 private:
  struct Place {
    ino_t inode = 0;
    std::uint64_t read = 0;
    bool cut = false;  // what comes next is the end of a line
  };
  void take_places(const std::vector<PlogFile>& files, const Now& now, bool ended);
  void read_file(const PlogFile& file, Place& place, std::span<char> buffer, BootTime now,
                 bool ended);
  void examine(std::string_view line, const PlogFile& file, BootTime now);

  PlogTree tree_;
  std::map<std::string, Place> places_;
  FoundEvidence best_;
  BootTime best_at_{};
};

}  // namespace muster::agent
