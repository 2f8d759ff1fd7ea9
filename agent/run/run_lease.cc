#include "agent/run/run_lease.h"

#include "common/base/lease.h"
#include "common/rundir/records.h"

namespace muster::agent {
namespace {

constexpr Duration kGraceDefault = std::chrono::minutes(30);

}  // namespace

void RunLease::adopt(const rundir::RunLayout& layout, const BootId& boot) {
  auto lease = rundir::read_lease(layout);
  if (!lease || !*lease) return;
  if (const auto end = rundir::lease_end(**lease, boot)) until_ = *end;
}

Result<void> RunLease::renew(const rundir::RunLayout& layout, const BootId& boot, BootTime heard,
                             Duration grace, bool at_start) {
  if (grace <= Duration::zero()) grace = kGraceDefault;
  const Duration step = lease_step(grace);
  const BootTime until = heard + grace + step;
  if (!at_start && until_ && until < *until_ + step) return {};
  if (auto written = rundir::write_lease(layout, until, boot); !written) {
    refused_ = true;
    return written;
  }
  refused_ = false;
  logged_.over();
  until_ = until;
  return {};
}

}  // namespace muster::agent
