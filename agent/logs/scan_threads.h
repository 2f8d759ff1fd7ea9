// ScanThreads runs scans that may hang, for example of a job's directories on a dead file system.
// Scans (scans.h) owns it. Any thread may call it; the work runs on detached threads.
//
//   - A lane is one file system, or one kind of scan of one run while its file system is unknown.
//     The work of a lane runs in order, one piece at a time, and a piece that hangs delays only its
//     lane.
//   - Lanes whose file system is unknown may all hang on the same one, for example after a restart
//     of the agent. So of those that are mounted at one place (mount_points.h) at most
//     kUnknownOfMount have a thread at a time. The others wait, and delay nobody else.
//   - A lane has a thread while it has work. At most `most` lanes have one at a time
//     (WatchOptions::scan_threads, 64). The others wait in order, and each turn runs one piece.
//   - If all threads hang, work of other lanes waits: no checkpoint, no success file and no log of
//     a script is seen any more, on any file system. The caller is not delayed; what needs no scan
//     continues (logs, steps, ends of ranks). why_waiting() has the text that is reported. No
//     thread is added. When one of the file systems answers, its thread serves the lanes that wait.
//
// No thread is ever joined. The threads are detached and own all that they touch: they share the
// queue, and work must own its captures. A thread that hangs in the kernel when this object is
// destroyed remains; it finds the queue closed when it returns, and ends.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace muster::agent {

class ScanThreads {
 public:
  using Work = std::move_only_function<void()>;
  enum class LaneKind : std::uint8_t { Run, Device };
  struct Lane {
    LaneKind kind = LaneKind::Run;
    std::uint64_t number = 0;  // st_dev; or the number of the run
    std::uint64_t mount = 0;   // of a run: mount_of() its path
    friend auto operator<=>(const Lane&, const Lane&) = default;
  };

  static constexpr std::size_t kUnknownOfMount = 16;

  explicit ScanThreads(std::size_t most);
  ~ScanThreads() { close(); }
  ScanThreads(const ScanThreads&) = delete;
  ScanThreads& operator=(const ScanThreads&) = delete;

  void run(Lane lane, Work work);
  // Reports whether a thread runs a piece of this lane.
  [[nodiscard]] bool at_work(Lane lane) const;
  // Returns why a lane that is not at work has no thread. Empty: it is about to get one.
  [[nodiscard]] std::string why_waiting(Lane lane) const;
  // Tries again to start threads that the system refused.
  void kick();
  // Drops work that has not begun, and all later work.
  void close();

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace muster::agent
