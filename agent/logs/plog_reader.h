// PlogReader reads a rank's process log (plog_tree.h) and keeps the best line that shows why the
// rank ended. ProcessLogs (process_logs.h) owns it. Only the watch thread uses it.
//
// It reads the new bytes of the files from time to time, and keeps a line for kLineLives. An error
// that a healthy training once logged must not explain an end long after it. It stores nothing on
// disk. A later incarnation of the agent reads the existing files again.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "agent/logs/evidence.h"
#include "agent/logs/plog_tree.h"
#include "common/base/time.h"

namespace muster::agent {

class PlogReader {
 public:
  static constexpr std::size_t kFilesRead = 32;  // the newest files, in one read()
  // Bytes of one file in one read(). If more is unread, the older bytes are skipped.
  static constexpr std::uint64_t kBehindMost = 1 << 20;
  // the same at the rank's end, when the exit waits for the answer
  static constexpr std::uint64_t kBehindAtEnd = 256 << 10;
  // All files together get this multiple of the limit of one file, the newest files first.
  static constexpr std::uint64_t kFilesBehind = 4;
  static constexpr Duration kLineLives = std::chrono::minutes(10);

  explicit PlogReader(std::filesystem::path dir) : tree_(std::move(dir)) {}

  [[nodiscard]] bool exists() const { return tree_.exists(); }
  // `ended` means that the rank's process is gone: an unfinished line counts as a line.
  void read(std::span<char> buffer, const Now& now, bool ended);
  // Returns the line with the name of its file in front. If its rank is 0, nothing was found.
  [[nodiscard]] FoundEvidence evidence(BootTime now) const;
  std::uint64_t trim(std::uint64_t cap) const { return tree_.trim(cap); }

 private:
  struct Place {
    ino_t inode = 0;
    std::uint64_t read = 0;
    bool cut = false;  // the next bytes are the end of a line that was cut
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
