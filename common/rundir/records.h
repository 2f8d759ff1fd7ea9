// launch, claim and lease of a run directory: one frame each (common/io/frames.h), seen whole or
// not at all. Any thread; blocking. Reading returns a value and starts nothing. Who writes what,
// and when: layout.h.
#pragma once

#include <optional>
#include <vector>

#include "common/base/error.h"
#include "common/base/ids.h"
#include "common/base/time.h"
#include "common/rundir/layout.h"
#include "muster/rundir/v1/rundir.pb.h"

namespace muster::rundir {

inline constexpr std::uint32_t kVersion = 1;

// The directory with logs/ and the wake FIFO in it, mode 0700; the runs directory above must be
// there.
// Already there is no error. A file system that has no FIFOs costs the wake FIFO, not the run.
Result<void> make_run(const RunLayout& run);

// In each: nothing = the file is not there; DataLoss = it is, but what is in it is not sound.
Result<void> write_launch(const RunLayout& run, const v1::Launch& launch);
// Unsupported: a version this program does not know
Result<std::optional<v1::Launch>> read_launch(const RunLayout& run);

// false = somebody has claimed it before. Always with the boot id, also for "never" (pid 0).
Result<bool> write_claim(const RunLayout& run, const v1::Claim& claim);
Result<std::optional<v1::Claim>> read_claim(const RunLayout& run);

// The orphan grace ends at `until`, on this boot.
Result<void> write_lease(const RunLayout& run, BootTime until, const BootId& boot);
Result<std::optional<v1::Lease>> read_lease(const RunLayout& run);
// The time, if it is of this boot.
std::optional<BootTime> lease_end(const v1::Lease& lease, const BootId& boot);

struct RunFound {
  JobId job;
  AttemptNo attempt;
};
// The run directories of an agent, sorted. Names that are none are left out.
Result<std::vector<RunFound>> list_runs(const AgentLayout& agent);

}  // namespace muster::rundir
