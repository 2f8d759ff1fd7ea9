// Looks at this node's devices again and again, on a thread of its own: tools may take long, and
// what they ask of a driver may hang for ever. Owns the thread and the tool runner. `on_probed` is
// called on that thread, and never after stop().
// Stop: what is asked of tools is ended at once. A thread that the kernel holds is left behind: it
// touches nothing of its caller's any more.
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
  // Begins at once; `interval` from the end of one look to the beginning of the next, zero: there
  // is no other.
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
