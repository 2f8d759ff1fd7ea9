// A run directory on the simulator's disk: the content that common/rundir/layout.h describes, as
// values. Plain values.
//
// A wiped or rebooted disk drops whole directories, or their ends. A worker that still has a
// dropped directory open writes to a directory that nobody can find.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "agent/core/identity.h"
#include "agent/core/reconcile.h"

namespace muster::sim {

struct Claim {
  std::uint64_t pid = 0;  // 0: the agent's "never start this"
  BootId boot;
};
struct Lease {
  BootTime until{};
  BootId boot;
};

struct WorkerEvent {
  enum class Kind { RankStarted, Started, StartFailed, Exited, StopRequested, Swept };
  Kind kind{};
  WallTime at{};
  BootTime boot{};  // the same moment
  std::uint32_t rank = 0;
  std::uint64_t pid = 0;
  std::int32_t code = 0, signal = 0;
  bool stop_requested = false;
  bool orphaned = false;  // for a StopRequested
};

// As in v1.UploadOrder.
struct UploadTask {
  agent::RunKey run;
  std::optional<std::int64_t> step;
  bool seal = false;
  bool logs = false;
  friend auto operator<=>(const UploadTask&, const UploadTask&) = default;
};

struct AgentMark {
  enum class Kind { Refused, Swept, FirstStep, ClockSkewed, Uploaded };
  Kind kind{};
  WallTime at{};
  v1::StartFailure why{};    // for a Refused
  v1::SweptWhy swept_why{};  // for a Swept
  std::string text;
  std::int64_t step = 0;
  Duration ahead{};        // for a ClockSkewed
  UploadTask upload = {};  // for an Uploaded; `text`: the problem
  std::vector<agent::RunSeen::Removed> removed = {};
};

struct RunDir {
  std::optional<v1::NodeLaunch> launch;  // the launch record
  BootId launch_boot;
  std::optional<Claim> claim;
  std::optional<Lease> lease;
  std::vector<WorkerEvent> events;
  std::vector<AgentMark> marks;
};

struct Disk {
  std::optional<agent::Identity> identity;
  std::map<agent::RunKey, std::shared_ptr<RunDir>> runs;
};

}  // namespace muster::sim
