// Denials writes who was refused what into a file of its own, STATE_DIR/denials.log (mode 0600).
// main() of the controller owns it. Thread-safe.
//
// A cause (who, what, which job, why) has at most one line a minute, with the number of refusals
// since its line before. Only `later` leads to a write: a refusal costs its caller no disk. Lines
// are not synced, so that nobody buys a sync with a packet. At file_most bytes the file is renamed
// to denials.1.log, over the one before. Causes beyond kCausesMost in one minute share a line.
//
//   2026-11-26T14:00:00Z user=bob method=JobService/ReadLogs job=01jabcdefghj0 count=1 why="..."
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

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

  // Runs a task, on a thread that may wait for the disk. After the end it may drop the task.
  using Later = std::function<void(std::move_only_function<void()>)>;

  Denials(std::filesystem::path file, const Clock& clock, Later later,
          std::uint64_t file_most = kFileMost)
      : file_(std::move(file)), clock_(clock), later_(std::move(later)), file_most_(file_most) {}
  ~Denials();  // writes what was counted; `later` has no task of it any more

  void note(Denial denial);

 private:
  struct Counted {
    std::optional<BootTime> written;  // its last line
    std::uint64_t since = 0;          // refusals since then
    [[nodiscard]] bool due(BootTime now) const { return !written || now - *written >= kWindow; }
  };
  void write(bool all);
  // The lines that are due. Causes whose minute is over without a refusal are forgotten.
  std::string take(bool all);
  // An error number, or 0.
  int append(std::string_view lines) const MUSTER_REQUIRES(file_mutex_);

  const std::filesystem::path file_;
  const Clock& clock_;
  const Later later_;
  const std::uint64_t file_most_;
  Mutex mutex_;  // never held while the disk works
  std::map<Denial, Counted> causes_ MUSTER_GUARDED_BY(mutex_);
  BootTime taken_ MUSTER_GUARDED_BY(mutex_){};    // when lines were last taken
  bool asked_ MUSTER_GUARDED_BY(mutex_) = false;  // a task was given to `later_`
  Mutex file_mutex_;
  OncePerCause trouble_ MUSTER_GUARDED_BY(file_mutex_);
};

}  // namespace muster::controller
