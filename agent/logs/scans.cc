#include "agent/logs/scans.h"

#include <fmt/format.h>

#include <utility>

namespace muster::agent {

void Scans::answered(ScanThreads::Lane lane) {
  hung_.erase(lane);
  no_thread_.over();
}

void Scan::send(ScanThreads::Work work) {
  since_ = system_clock().now().boot;
  hang_.over();
  scans_.threads_.run(lane(), std::move(work));
}

void Scan::returned(std::uint64_t device) {
  if (hangs()) {  // it answers: the next hang is reported again
    scans_.answered(lane());
    if (device != 0) scans_.answered(of_device(device));
  }
  flight_.ended();
  device_ = device;
}

void Scan::check(BootTime now, std::string_view doing, const std::string& path, const RunKey& run) {
  if (now < next_check()) return;
  const bool begun = scans_.threads_.at_work(lane());
  const std::string why = begun ? std::string() : scans_.threads_.why_waiting(lane());
  if (!begun && why.empty()) {
    since_ = now;
    return;
  }
  hang_.first();
  const std::string what = fmt::format("{} '{}' for job '{}' attempt {}", doing, path,
                                       run.first.str(), run.second.value);
  const auto waited = scans_.hang_after_ / std::chrono::milliseconds(1);
  if (begun && scans_.hung_[lane()].first())
    scans_.reports_.trouble(fmt::format(
        "{}: no answer for {} ms; runs of that file system wait for it, all else goes on; is its "
        "server there?",
        what, waited));
  if (!begun && scans_.no_thread_.first(why))
    scans_.reports_.trouble(fmt::format(
        "{}: not begun for {} ms: {}; it and others wait their turn, logs and progress go on", what,
        waited, why));
}

}  // namespace muster::agent
