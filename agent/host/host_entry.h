// One run of the Host: its view, what minds its worker, a sweep under way. Private to agent/host.
#pragma once

#include <memory>
#include <optional>

#include "agent/host/container_removal.h"
#include "agent/host/host.h"
#include "agent/host/run_view.h"
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

  // Nobody writes into its directory any more but this agent.
  [[nodiscard]] bool over() const {
    return seen.worker == WorkerState::Never || (seen.swept && seen.worker == WorkerState::Dead);
  }

  // Order matters: a Readable goes before the descriptor it waits on.
  RunView view;
  std::optional<rundir::WakeFifo> wake_fifo;  // while the worker may still ring it
  std::unique_ptr<async::Readable> wake_fifo_ready;
  BootTime lease_until{};
  bool lease_refused = false;                 // by the disk, when it was to be renewed
  google::protobuf::Duration grace_at_start;  // before there is a launch record to read it from
  bool fresh = false;                         // made by this life, nothing was spawned for it
  bool damage_logged = false;                 // of its events
  bool marks_damage_logged = false;
  // it could not be read, or not be told whether its worker lives
  bool scan_again = false;
  bool unread_logged = false;              // once, until it works again
  BootTime unread_since{};                 // while unread_logged
  bool removal_logged = false;             // that its directory is gone
  std::optional<BootTime> stop_signalled;  // by this life of the agent
  std::unique_ptr<async::Timer> obey_timer;
  BootTime obey_at{};  // when it rings
  bool worker_killed = false;
  bool supervises_nobody = false;  // its worker, at the last look for frozen ones
  std::string blocked_logged;      // why a sweep waits, said once a cause

  pid_t child = 0;  // the worker, while it is ours to reap
  std::optional<process::Pidfd> child_fd;
  std::unique_ptr<async::Readable> child_ready;
  std::unique_ptr<async::Readable> worker_ready;  // on view.worker()

  std::optional<process::ProcessTagSweep> sweep;
  // its events descriptor is what sweep_ready waits on, when it is there
  std::optional<process::Cgroup> group_waited;
  std::unique_ptr<async::Readable> sweep_ready;
  std::unique_ptr<async::Timer> group_timer;
  std::string sweep_reason;
  std::unique_ptr<ContainerRemoval> removal;  // after the sweep of a run in a container
  bool container_removed = false;
  // its start looks for its image, or for files of other nodes
  bool fetching_image = false;
  std::shared_ptr<const ImageNews> image_news;  // meanwhile
  bool reads_checkpoint = false;                // its start looks at what it is to resume from
  std::unique_ptr<async::Timer> stop_timer;     // a stop waits for that

  std::optional<rundir::MarkWriter> marks;

  // What the disk refused to remember.
  std::optional<std::pair<v1::StartFailure, std::string>> refused_in_memory;
  v1::CheckpointReading refused_for_in_memory;
  std::optional<std::string> swept_in_memory;
  WallTime in_memory_at{};
  RunSeen& seen;  // in Impl::all_seen: the view's, and what is only in memory
};

}  // namespace muster::agent
