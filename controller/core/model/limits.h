// What bounds the controller's decisions. Plain values. The controller makes one at its start from
// its options (config.h) and never changes it; tests make their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "common/base/time.h"

namespace muster::core {

struct Limits {
  std::uint32_t queued_jobs_max = 100'000;
  std::uint16_t port_first = 20'000, port_last = 29'999;
  // Without any message from a node; heartbeats come each second.
  Duration silent_after = std::chrono::milliseconds(3'200);
  // Added to orphan_grace before the fence trusts it.
  Duration grace_margin = std::chrono::seconds(5);
  // From the placement to NodeStarted of a connected node.
  Duration start_timeout = std::chrono::seconds(60);
  // After a start, nothing is placed until all known nodes were heard. The wait is at most this
  // long.
  Duration hear_first{};
  // The same after an accepted loss of the journal's end. It is longer than the time between two
  // attempts of an agent that was refused (5 s), because its node may not be in the ledger.
  Duration hear_after_loss{};
  // The verdict waits this long for exits on silent nodes.
  Duration exit_bound = std::chrono::seconds(2);
  // How long a finished job stays in the ledger; 0 in tests.
  Duration archive_after = std::chrono::minutes(10);
  Duration tombstone_keep = std::chrono::hours(24 * 7);
  // If there are more, the oldest are dropped earlier. A tombstone takes about 1 KiB of memory. The
  // number is enough for a job every 2.5 seconds during a week.
  std::size_t tombstones_max = 250'000;
  std::uint32_t attempts_without_progress_max = 5;
  // The job avoids a node that could not start its part. It does so for this long after the first
  // failure, and twice as long after each further failure in a row.
  Duration start_pause = std::chrono::seconds(10), start_pause_max = std::chrono::minutes(5);
  // recovery.backoff doubles up to this, unless it is longer itself. The wait is for what others
  // have to repair, and often nobody watches the job. When it is repaired, the job is back after at
  // most this long.
  Duration backoff_max = std::chrono::minutes(10);
  // This many starts of a job in a row may fail because of ports that muster chose. Later ones are
  // charged.
  std::uint32_t taken_ports_max = 8;
  // Two equal failures in a row quarantine the checkpoint that both attempts resumed from, if they
  // came within this many steps of it.
  std::int64_t suspect_steps = 5;
  // The directory that agents check (nodes/outputs_storage.h). Empty: nobody checks one.
  std::string outputs_root;
  // Below it are the outputs of jobs whose ResolvedSpec has no outputs_root.
  std::string cluster_out;
};

}  // namespace muster::core
