#include "worker/event_queue.h"

#include <algorithm>

namespace muster::worker {
namespace {

// An event has 60 to 90 bytes. Each rank has two, and a start may fail with a sentence.
constexpr std::uint64_t kBytesARank = 256;
constexpr std::uint64_t kBytesARun = 4096;

}  // namespace

Result<EventQueue> EventQueue::open(const rundir::RunLayout& run, const BootId& boot,
                                    const Clock& clock) {
  auto writer = rundir::EventWriter::open(run.events());
  if (!writer) return fail(std::move(writer.error()));
  EventQueue queue(std::move(*writer), rundir::WakeFifo::open(run), boot, clock);
  queue.ring();
  return queue;
}

void EventQueue::ring() const {
  if (wake_fifo_) wake_fifo_->ring();
}

rundir::v1::Event& EventQueue::add() {
  waiting_.push_back(rundir::stamped_event({.now = clock_->now(), .boot = boot_}));
  return waiting_.back();
}

bool EventQueue::flush() {
  if (waiting_.empty()) return true;
  auto written = writer_.append(waiting_);
  if (!written) {
    if (!trouble_ || trouble_->message != written.error().message) reported_ = false;
    trouble_ = std::move(written.error());
    return false;
  }
  waiting_.clear();
  trouble_.reset();
  ring();
  return true;
}

bool EventQueue::end_waits() const {
  using rundir::v1::Event;
  return std::ranges::any_of(waiting_, [](const Event& event) {
    return event.has_exited() || event.has_auxiliary_exited() || event.has_setup_ended() ||
           event.has_start_failed() || event.has_swept();
  });
}

std::optional<Error> EventQueue::take_complaint() {
  if (!trouble_ || reported_) return std::nullopt;
  reported_ = true;
  return trouble_;
}

void EventQueue::reserve(std::size_t ranks) { writer_.reserve(kBytesARun + kBytesARank * ranks); }

}  // namespace muster::worker
