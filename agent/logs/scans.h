// Scan is one kind of file work of one run that may hang: at most one piece of it is under way, on
// a scan thread (scan_threads.h). Scans reports the pieces that hang, once for each file system.
// WatchTools owns Scans, and a Watcher owns each Scan. Only the watch thread uses them; pieces of
// work own what they touch, and send their result through the inbox.
//
//   nothing under way --send()--> under way --returned()--> nothing under way
//                                     |
//                                     after hang_after: check() reports it once, and hangs() is
//                                     true until the next send()
//
// Errors: none; what hangs is reported as trouble, and the watch continues without its answer.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "agent/logs/log_source.h"
#include "agent/logs/mount_points.h"
#include "agent/logs/scan_threads.h"
#include "agent/logs/watch_reports.h"
#include "common/base/once_per_cause.h"
#include "common/base/single_flight.h"
#include "common/base/time.h"

namespace muster::agent {

class Scans {
 public:
  Scans(std::size_t threads, Duration hang_after, const WatchReports& reports)
      : hang_after_(hang_after), reports_(reports), threads_(threads) {}
  // Tries again to start threads that the system refused.
  void kick() { threads_.kick(); }
  // Work of this lane has ended: its next hang is reported again. For work whose Scan is gone;
  // others call Scan::returned().
  void answered(ScanThreads::Lane lane);

 private:
  friend class Scan;
  const Duration hang_after_;
  const WatchReports& reports_;
  ScanThreads threads_;
  std::uint64_t last_number_ = 0;
  OncePerCause no_thread_;
  std::map<ScanThreads::Lane, OncePerCause> hung_;  // lanes of which a hang was reported
};

class Scan {
 public:
  // `path`: where it will work.
  Scan(Scans& scans, const std::string& path)
      : scans_(scans), number_(++scans.last_number_), mount_(mount_of(path)) {}
  ~Scan() { scans_.hung_.erase(own_lane()); }
  Scan(const Scan&) = delete;
  Scan& operator=(const Scan&) = delete;

  // True: the caller sends the work now. False: a piece is under way, and one more is due after it.
  bool want() { return flight_.want(); }
  // It is due, and a later take() finds that.
  void set_due() { flight_.set_due(); }
  // True: it is due and nothing is under way; the caller sends the work now.
  bool take() { return flight_.take(); }
  [[nodiscard]] bool due() const { return flight_.due(); }
  [[nodiscard]] bool under_way() const { return flight_.under_way(); }

  // Only after want() or take() was true.
  void send(ScanThreads::Work work);
  // The lane of the work that is under way, or of the next one. Work passes it to
  // Scans::answered() if it finds its watcher gone.
  [[nodiscard]] ScanThreads::Lane lane() const {
    return device_ != 0 ? of_device(device_) : own_lane();
  }
  // Runs work, after what is under way, whose end nobody waits for: it closes files.
  void send_last(ScanThreads::Work work) { scans_.threads_.run(lane(), std::move(work)); }
  // The work has ended. `device` is the file system that it was on, 0: still unknown.
  void returned(std::uint64_t device);
  // Reports the work if it hangs: "DOING 'PATH' for job ...: no answer ...".
  void check(BootTime now, std::string_view doing, const std::string& path, const RunKey& run);
  [[nodiscard]] bool hangs() const { return hang_.reported(); }
  // The time of the next check().
  [[nodiscard]] BootTime next_check() const {
    return under_way() && !hangs() ? since_ + scans_.hang_after_ : BootTime::max();
  }

 private:
  static ScanThreads::Lane of_device(std::uint64_t device) {
    return {.kind = ScanThreads::LaneKind::Device, .number = device};
  }
  // While its file system is unknown, a scan has a lane of its own.
  [[nodiscard]] ScanThreads::Lane own_lane() const {
    return {.kind = ScanThreads::LaneKind::Run, .number = number_, .mount = mount_};
  }

  Scans& scans_;
  const std::uint64_t number_;  // of no other scan
  const std::uint64_t mount_;   // mount_points.h
  SingleFlight flight_;
  BootTime since_{};  // when the work was sent, or its last delay without a cause
  OncePerCause hang_;
  std::uint64_t device_ = 0;
};

}  // namespace muster::agent
