// Reads and writes launch, claim and lease of a run directory. Stateless functions; reading returns
// a value and starts nothing. Any thread; blocking.
//
// Each file is one frame (common/io/frames.h). A reader gets a whole record or none. layout.h lists
// who writes which file, and when.
//
// A job may replace what is in its run directory, and the run directory itself. So the directory is
// opened once for each call (io::Beneath), and no link in it is followed. A record belongs to the
// agent's user, and nobody else may write it. Any other file is ErrorCode::DataLoss, with a
// sentence that names its owner: it is never believed.
#pragma once

#include <optional>
#include <vector>

#include "common/base/error.h"
#include "common/base/ids.h"
#include "common/base/time.h"
#include "common/io/beneath.h"
#include "common/rundir/layout.h"
#include "muster/rundir/v1/rundir.pb.h"

namespace muster::rundir {

inline constexpr std::uint32_t kVersion = 2;  // the newest; 1 is read, too

// Opens the run directory. NotFound: it does not exist. DataLoss: a link has its place.
Result<io::Beneath> open_run(const RunLayout& run);

// Creates the directory with logs/ and the wake FIFO in it, mode 0700. The runs directory above it
// is created, too. An existing directory is no error, but a link in its place is. A file system
// without FIFOs costs the wake FIFO, but not the run.
Result<void> make_run(const RunLayout& run);

// Every read returns nothing if the file does not exist, and DataLoss if its content is not sound
// or is not believed.
Result<void> write_launch(const RunLayout& run, const v1::Launch& launch);
// Unsupported: a version that this program does not know.
Result<std::optional<v1::Launch>> read_launch(const RunLayout& run);

// Returns false if somebody has claimed it before. A claim always has the boot id, also for "never"
// (pid 0).
Result<bool> write_claim(const RunLayout& run, const v1::Claim& claim);
Result<std::optional<v1::Claim>> read_claim(const RunLayout& run);

// Writes that the orphan grace ends at `until`, on this boot.
Result<void> write_lease(const RunLayout& run, BootTime until, const BootId& boot);
Result<std::optional<v1::Lease>> read_lease(const RunLayout& run);
// Returns the time if the lease is of this boot.
std::optional<BootTime> lease_end(const v1::Lease& lease, const BootId& boot);

struct RunFound {
  JobId job;
  AttemptNo attempt;
};
// Returns the run directories of an agent, sorted. It skips names that are not run directories.
Result<std::vector<RunFound>> list_runs(const AgentLayout& agent);

}  // namespace muster::rundir
