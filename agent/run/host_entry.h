// Host::Entry is everything that the agent has of one run on this node: what its directory shows
// (RunView), its lease, its worker (WorkerSupervision), a sweep in progress (RunSweep), what its
// facts wait for (RunReporting). Host::Impl creates and destroys it, on the agent's loop. Private
// to agent/run.
//
// The run's phase is derived (agent/core/run_phase.h): nothing here repeats it.
#pragma once

#include <array>
#include <memory>
#include <optional>

#include "agent/core/run_phase.h"
#include "agent/run/host.h"
#include "agent/run/run_lease.h"
#include "agent/run/run_reporting.h"
#include "agent/run/run_sweep.h"
#include "agent/run/run_view.h"
#include "agent/run/starting.h"
#include "agent/run/unwritten.h"
#include "agent/run/worker_supervision.h"
#include "common/async/loop.h"
#include "common/base/once_per_cause.h"
#include "common/rundir/event_log.h"
#include "common/rundir/wake_fifo.h"

namespace muster::agent {

struct Host::Entry {
  Entry(async::Loop& loop, rundir::RunLayout layout, const BootId& boot, RunSeen& shown,
        WorkerSupervision::Options supervision, WorkerSupervision::Callbacks callbacks)
      : view(std::move(layout), boot),
        worker(loop, supervision, std::move(callbacks)),
        seen(shown) {}

  [[nodiscard]] RunPhase phase() const { return phase_of(seen, view.own_boot()); }
  // True if only this agent still writes into the run directory.
  [[nodiscard]] bool over() const {
    const RunPhase now = phase();
    return now == RunPhase::Refusing || now == RunPhase::Refused || now == RunPhase::Over;
  }

  // Order matters: a Readable must be destroyed before the descriptor that it waits on.
  RunView view;
  std::optional<rundir::WakeFifo> wake_fifo;  // while the worker may still ring it
  std::unique_ptr<async::Readable> wake_fifo_ready;
  RunLease lease;
  WorkerSupervision worker;
  std::unique_ptr<RunSweep> sweep;
  RunReporting reporting;
  std::optional<rundir::MarkWriter> marks;
  Unwritten unwritten;

  // Set while the run cannot be read, or while it is unknown whether its worker lives: since then.
  std::optional<BootTime> unread_since;
  // What is logged once: damage of its events and of its marks, the removal of its directory.
  OncePerCause events_damage, marks_damage, removal;
  std::array<OncePerCause, 4> not_believed;  // as RunView::not_believed

  std::optional<Starting> starting;

  RunSeen& seen;  // in Impl::all_seen: the view's part, and what is only in memory
};

}  // namespace muster::agent
