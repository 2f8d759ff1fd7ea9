// ContainerRemoval runs `podman rm --force NAME` and removes what is left of a container whose
// processes have ended. The Host creates one per run after a sweep. It runs on the agent's loop,
// and owns the tool's process until that has ended.
//
// A tool that does not end is killed after 60 s. That is safe: the sweep before it found no process
// of the run.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>

#include "common/async/loop.h"
#include "common/base/error.h"
#include "common/process/pidfd.h"
#include "muster/rundir/v1/rundir.pb.h"

namespace muster::agent {

class ContainerRemoval {
 public:
  // `then` gets what went wrong, or an empty text. It is called on the loop, never inside this
  // call. It may destroy this object.
  using Then = std::function<void(const std::string& trouble)>;
  static Result<std::unique_ptr<ContainerRemoval>> start(
      async::Loop& loop, const rundir::v1::ContainerLaunch& container, Then then);
  ~ContainerRemoval();
  ContainerRemoval(const ContainerRemoval&) = delete;
  ContainerRemoval& operator=(const ContainerRemoval&) = delete;

 private:
  ContainerRemoval(async::Loop& loop, pid_t pid, process::Pidfd handle, std::string tool,
                   Then then);
  void ended();
  int reap();
  pid_t pid_;
  process::Pidfd handle_;
  std::string tool_;  // empty: the exit status has no meaning (docker)
  Then then_;
  bool late_ = false;
  std::unique_ptr<async::Readable> ready_;
  async::Timer timer_;
};

}  // namespace muster::agent
