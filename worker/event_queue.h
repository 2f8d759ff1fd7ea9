// EventQueue writes the worker's events to the run directory, in order. main() opens it, and
// Supervisor owns it. It runs on the worker's one thread.
//
// An event that cannot be written (disk full) stays in the queue, and the write is tried again. As
// long as the worker lives, no exit is lost and no event is written out of order. The queue rings
// the run's wake FIFO after each write, and once in open(), when the claim already exists.
#pragma once

#include <optional>
#include <vector>

#include "common/base/error.h"
#include "common/base/time.h"
#include "common/rundir/event_log.h"
#include "common/rundir/wake_fifo.h"

namespace muster::worker {

class EventQueue {
 public:
  static Result<EventQueue> open(const rundir::RunLayout& run, const BootId& boot,
                                 const Clock& clock);

  // Appends an empty event with the current time to the queue; the caller fills it in.
  rundir::v1::Event& add();
  // Writes all waiting events at once. Returns false if they still wait; take_complaint() then has
  // the reason, once for each new reason.
  bool flush();
  [[nodiscard]] bool empty() const { return waiting_.empty(); }
  // Reports whether the end of a process waits. Only the worker knows it.
  [[nodiscard]] bool end_waits() const;
  // errno of the last write; 0: it succeeded.
  [[nodiscard]] int error() const { return writer_.error(); }
  std::optional<Error> take_complaint();
  // Reserves disk space for the events of that many ranks, while the disk still has some.
  void reserve(std::size_t ranks);

 private:
  EventQueue(rundir::EventWriter writer, std::optional<rundir::WakeFifo> wake_fifo, BootId boot,
             const Clock& clock)
      : writer_(std::move(writer)),
        wake_fifo_(std::move(wake_fifo)),
        boot_(std::move(boot)),
        clock_(&clock) {}
  void ring() const;
  rundir::EventWriter writer_;
  std::optional<rundir::WakeFifo> wake_fifo_;
  BootId boot_;
  const Clock* clock_;
  std::vector<rundir::v1::Event> waiting_;
  std::optional<Error> trouble_;
  bool reported_ = false;
};

}  // namespace muster::worker
