// Prober probes this node's devices repeatedly. Agent (agent/loop.h) owns it. It has a thread of
// its own, because tools may take long and may hang in a driver for ever.
//
// It owns the thread and the tool runner. `on_probed` is called on that thread and never after
// stop(). stop() ends running tools at once. A thread that hangs in the kernel is detached. It no
// longer uses anything of the caller.
#pragma once

#include <functional>
#include <memory>

#include "agent/probe/probe.h"
#include "common/base/error.h"
#include "common/base/time.h"

namespace muster::agent::probe {

class Prober {
 public:
  using OnProbed = std::function<void(Probed)>;
  // Starts the first probe at once. `interval` is the time from the end of one probe to the start
  // of the next; zero: only one probe.
  static Result<std::unique_ptr<Prober>> start(ProbeOptions options, Duration interval,
                                               OnProbed on_probed);
  ~Prober();
  Prober(const Prober&) = delete;
  Prober& operator=(const Prober&) = delete;
  void stop();

 private:
  struct Shared;
  explicit Prober(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}
  std::shared_ptr<Shared> shared_;
};

}  // namespace muster::agent::probe
