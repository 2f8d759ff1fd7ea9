// Host::Entry is one run of the Host: its view, what supervises its worker, a sweep in progress.
// Host::Impl creates and destroys it, on the agent's loop. Private to agent/run.
#pragma once

#include <memory>
#include <optional>

#include "agent/container/container_removal.h"
#include "agent/run/host.h"
#include "agent/run/run_view.h"
#include "common/async/loop.h"
#include "common/process/cgroup.h"
#include "common/process/pidfd.h"
#include "common/process/process_tag.h"
#include "common/rundir/event_log.h"
#include "common/rundir/wake_fifo.h"

namespace muster::agent {

struct Host::Entry {
  Entry(rundir::RunLayout layout, const BootId& boot, RunSeen& shown)
      : view(std::move(layout), boot), seen(shown) {}

  // True if only this agent still writes into the run directory.
  [[nodiscard]] bool over() const {
    return seen.worker == WorkerState::Never || (seen.swept && seen.worker == WorkerState::Dead);
  }

  // Order matters: a Readable must be destroyed before the descriptor that it waits on.
  RunView view;
  std::optional<rundir::WakeFifo> wake_fifo;  // while the worker may still ring it
  std::unique_ptr<async::Readable> wake_fifo_ready;
  BootTime lease_until{};
  bool lease_refused = false;                 // the disk refused the last renewal
  google::protobuf::Duration grace_at_start;  // used until the launch record has it
  bool fresh = false;                         // made by this incarnation; nothing is spawned for it
  bool damage_logged = false;                 // damage of its events is logged
  bool marks_damage_logged = false;
  // the run could not be read, or it is unknown whether its worker lives
  bool scan_again = false;
  bool unread_logged = false;              // logged once, until the run can be read again
  BootTime unread_since{};                 // while unread_logged
  bool removal_logged = false;             // the removal of its directory is logged
  std::optional<BootTime> stop_signalled;  // by this incarnation of the agent
  std::unique_ptr<async::Timer> obey_timer;
  BootTime obey_at{};  // when obey_timer expires
  bool worker_killed = false;
  bool supervises_nobody = false;  // its worker, at the last check for frozen workers
  std::string blocked_logged;      // why a sweep waits, logged once per cause

  pid_t child = 0;  // the worker, until this agent reaps it
  std::optional<process::Pidfd> child_fd;
  std::unique_ptr<async::Readable> child_ready;
  std::unique_ptr<async::Readable> worker_ready;  // on view.worker()

  std::optional<process::ProcessTagSweep> sweep;
  // sweep_ready waits on its events descriptor, if it is set
  std::optional<process::Cgroup> group_waited;
  std::unique_ptr<async::Readable> sweep_ready;
  std::unique_ptr<async::Timer> group_timer;
  v1::SweptWhy sweep_why{};
  std::unique_ptr<ContainerRemoval> removal;  // after the sweep of a run in a container
  bool container_removed = false;
  // the start fetches its image, or files of other nodes
  bool fetching_image = false;
  std::shared_ptr<const ImageNews> image_news;  // set while fetching_image
  bool reads_checkpoint = false;                // the start reads the checkpoint to resume from
  std::unique_ptr<async::Timer> stop_timer;     // a stop waits for that read

  std::optional<rundir::MarkWriter> marks;

  // What the disk refused to store. The clock's skew is here also if it was stored.
  std::optional<std::pair<v1::StartFailure, std::string>> refused_in_memory;
  v1::CheckpointReading refused_for_in_memory;
  std::optional<v1::SweptWhy> swept_in_memory;
  std::optional<Duration> clock_ahead_in_memory;
  WallTime clock_ahead_at{};
  WallTime in_memory_at{};
  RunSeen& seen;  // in Impl::all_seen: the view's part, and what is only in memory
};

}  // namespace muster::agent
