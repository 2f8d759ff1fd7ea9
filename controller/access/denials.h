// Denials writes who was refused what into a file of its own, STATE_DIR/denials.log (mode 0600).
// main() of the controller owns it. Thread-safe.
//
// A cause (who, what, which job, why) has at most one line a minute, with the number of refusals
// since its line before. Lines are not synced, so that nobody buys a sync with a packet. At
// file_most bytes the file is renamed to denials.1.log, over the one before. Causes beyond
// kCausesMost in one minute share a line.
//
//   2026-11-26T14:00:00Z user=bob method=JobService/ReadLogs job=01jabcdefghj0 count=1 why="..."
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "common/base/mutex.h"
#include "common/base/once_per_cause.h"
#include "common/base/time.h"
#include "common/io/unique_fd.h"

namespace muster::controller {

struct Denial {
  std::string user;
  std::string method;  // "JobService/ReadLogs"
  std::string job;     // empty: it is about no job
  std::string why;     // one sentence
  friend auto operator<=>(const Denial&, const Denial&) = default;
};

class Denials {
 public:
  static constexpr std::size_t kCausesMost = 1'000;
  static constexpr std::uint64_t kFileMost = 1 << 20;
  static constexpr Duration kWindow = std::chrono::minutes(1);

  Denials(std::filesystem::path file, const Clock& clock, std::uint64_t file_most = kFileMost)
      : file_(std::move(file)), clock_(clock), file_most_(file_most) {}
  ~Denials();  // writes what was counted

  void note(Denial denial);

 private:
  struct Counted {
    BootTime written{};       // its last line
    std::uint64_t since = 0;  // refusals since then
  };
  void write_old(BootTime now, bool all) MUSTER_REQUIRES(mutex_);
  void write(const Denial& denial, std::uint64_t count) MUSTER_REQUIRES(mutex_);
  void append(std::string_view line) MUSTER_REQUIRES(mutex_);

  const std::filesystem::path file_;
  const Clock& clock_;
  const std::uint64_t file_most_;
  Mutex mutex_;
  std::map<Denial, Counted> causes_ MUSTER_GUARDED_BY(mutex_);
  BootTime swept_ MUSTER_GUARDED_BY(mutex_){};  // when old causes were last searched for
  OncePerCause trouble_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::controller
