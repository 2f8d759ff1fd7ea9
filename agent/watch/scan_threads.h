// Threads for looks that may hang: into directories that belong to jobs, on file systems that may
// be dead. A lane is one file system, or one run as long as its file system is not known: its work
// is done in order, one piece at a time, and a piece that hangs holds up its lane alone. A lane has
// a thread while it has work, at most `most` lanes at a time; the others wait their turn, in order,
// one piece a turn.
//
// Nobody ever waits for a thread: they are detached and own all that they touch (the queue is
// shared with them; work must own its captures). One that hangs in the kernel when this object goes
// stays behind, finds the queue closed when it comes back, and ends.
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
    std::uint64_t number = 0;  // st_dev; or the run's own
    friend auto operator<=>(const Lane&, const Lane&) = default;
  };

  explicit ScanThreads(std::size_t most);
  ~ScanThreads() { close(); }
  ScanThreads(const ScanThreads&) = delete;
  ScanThreads& operator=(const ScanThreads&) = delete;

  void run(Lane lane, Work work);
  // A piece of its work is on a thread.
  [[nodiscard]] bool at_work(Lane lane) const;
  // Why a lane that is not at work has no thread; empty: it is about to have one.
  [[nodiscard]] std::string why_waiting() const;
  // Tries again for threads that the system refused.
  void kick();
  // What has not begun is dropped, and so is all that comes later.
  void close();

 private:
  struct State;
  static void serve(const std::shared_ptr<State>& state);
  static void begin_thread(const std::shared_ptr<State>& state);
  const std::shared_ptr<State> state_;
};

}  // namespace muster::agent
