// Events on their way to the run directory, in order. What cannot be written (disk full) stays here
// and is tried again: as long as the worker lives no exit is lost, and nothing is ever written out
// of order. Rings the run's wake FIFO after each write, and once when it is opened: by then the
// claim
// stands. The worker is single-threaded.
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

  // An empty event stamped with this moment, at the end of the queue: fill it in.
  rundir::v1::Event& add();
  // All that waits, in one write. False: it still waits; complaint() says why, once a change.
  bool flush();
  [[nodiscard]] bool empty() const { return waiting_.empty(); }
  // Among what waits is the end of something: nobody else can ever tell it.
  [[nodiscard]] bool end_waits() const;
  // errno of the last write; 0: it went well.
  [[nodiscard]] int error() const { return writer_.error(); }
  std::optional<Error> take_complaint();
  // Room on the disk for the events of that many ranks, taken while there is some.
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
