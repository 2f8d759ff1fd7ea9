// RunLease is the lease file of one run: until when its worker may go on without the controller
// (the orphan grace). The run's Host::Entry owns it. It runs on the agent's loop and writes one
// small file.
//
// The file is rewritten once per step (common/base/lease.h), and always one step longer than
// promised. So the disk always has at least the whole grace from `heard`.
#pragma once

#include <optional>

#include "common/base/error.h"
#include "common/base/ids.h"
#include "common/base/once_per_cause.h"
#include "common/base/time.h"
#include "common/rundir/layout.h"

namespace muster::agent {

class RunLease {
 public:
  // Reads what an earlier incarnation of the agent has written on this boot.
  void adopt(const rundir::RunLayout& layout, const BootId& boot);
  // Writes it if a step is gained; with `at_start` always. `grace`: zero means the default. An
  // error means that the disk refuses; it is returned each time.
  Result<void> renew(const rundir::RunLayout& layout, const BootId& boot, BootTime heard,
                     Duration grace, bool at_start);
  // Nothing: there is none yet.
  [[nodiscard]] std::optional<BootTime> until() const { return until_; }
  // The disk refused the last renewal.
  [[nodiscard]] bool refused() const { return refused_; }
  // True: the disk's refusal was not logged yet.
  bool first_refusal() { return logged_.first(); }

 private:
  std::optional<BootTime> until_;
  bool refused_ = false;
  OncePerCause logged_;
};

}  // namespace muster::agent
