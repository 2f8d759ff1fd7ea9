// `podman rm --force NAME`, on the loop: what is left of a container whose processes are gone. Owns
// the process until it has ended. A tool that does not end is killed after a while: the sweep
// before it has found no process of the run.
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
  // `then` is called on the loop, never from inside this call, with what went wrong, or nothing. It
  // may destroy this object.
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
  std::string tool_;  // empty: its status says nothing
  Then then_;
  bool late_ = false;
  std::unique_ptr<async::Readable> ready_;
  async::Timer timer_;
};

}  // namespace muster::agent
