// RunSweep ends every process of one run that may be left on this node, and then removes the run's
// container. The run's Host::Entry owns it as long as the sweep takes. It runs on the agent's loop.
//
//   processes with the run's tag, and those of its group, are killed until none is left
//     -> the group is empty, or was removed -> processes again -> ...
//     -> the container is removed, if there is one -> processes again
//     -> over
//
// It never gives up by itself: a process in uninterruptible sleep keeps it waiting, because "swept"
// must be true.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "agent/container/container_removal.h"
#include "common/async/loop.h"
#include "common/base/once_per_cause.h"
#include "common/base/time.h"
#include "common/process/cgroup.h"
#include "common/process/process_tag.h"

namespace muster::agent {

class RunSweep {
 public:
  // As known when the sweep begins: a launch record that can be read only later counts for the next
  // sweep.
  struct Options {
    std::string name;         // "JOB.ATTEMPT", for texts
    std::string process_tag;  // value of rundir::kProcessTagVariable
    process::TagUsers users;  // for whose processes it counts
    std::string group;        // path of its control group; empty: none
    std::uint64_t since = 0;  // start time of the worker, if known
    // Finds processes that have no tag, if there is no group at that time.
    std::optional<process::Family> family;
    std::optional<rundir::v1::ContainerLaunch> container;
  };
  struct Callbacks {
    // The last call: it may destroy this object. False: an error ended the sweep; the processes
    // that are left are found by the next one.
    std::function<void(bool swept)> ended;
    std::function<void(const std::string& text)> trouble;  // one line for the log
  };
  RunSweep(async::Loop& loop, Options options, Callbacks callbacks);
  RunSweep(const RunSweep&) = delete;
  RunSweep& operator=(const RunSweep&) = delete;

  // Call it once. It may call back before it returns.
  void begin();

 private:
  // Order matters: a Readable must be destroyed before the descriptor that it waits on.
  struct Killing {
    process::ProcessTagSweep sweep;
    std::unique_ptr<async::Readable> ready;
  };
  struct GroupEmpties {
    process::Cgroup group;
    std::unique_ptr<async::Readable> changed;
    std::unique_ptr<async::Timer> check;
  };
  using Removing = std::unique_ptr<ContainerRemoval>;

  void end(bool swept);
  void step();
  void wait_for_group(process::Cgroup group);
  void check_group();
  void tell_what_blocks(const process::ProcessTagSweep& sweep);
  bool begin_removal();
  void trouble(const std::string& doing, const std::string& what) const;

  async::Loop& loop_;
  const Options options_;
  const Callbacks callbacks_;
  OncePerCause blocked_;
  bool container_removed_ = false;
  std::variant<std::monostate, Killing, GroupEmpties, Removing> doing_;
};

}  // namespace muster::agent
