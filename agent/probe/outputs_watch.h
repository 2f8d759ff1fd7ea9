// OutputsWatch checks the directory of outputs again and again (outputs_check.h), on a thread of
// its own: the file system may hang. Agent (agent/loop.h) owns it, and uses it on its loop. It
// never has more than one thread. One that hangs at stop() is detached, and uses nothing of the
// caller.
//
// Nothing waits for it: a start of a job neither.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "common/base/error.h"
#include "common/base/time.h"
#include "muster/v1/node.pb.h"

namespace muster::agent::probe {

struct OutputsWatchOptions {
  // Makes one check of the directory. Blocking; it must not refer to the caller.
  std::function<v1::OutputsReading(const std::string& root)> check;
  // For the first minute marks of nodes that start at the same time appear one after another.
  Duration at_first = std::chrono::seconds(5), at_first_for = std::chrono::minutes(1);
  Duration interval = std::chrono::seconds(30);
  Duration hangs_after = std::chrono::seconds(20);
};

class OutputsWatch {
 public:
  // Starts with a check at once.
  static Result<std::unique_ptr<OutputsWatch>> start(std::string root, OutputsWatchOptions options);
  ~OutputsWatch();
  OutputsWatch(const OutputsWatch&) = delete;
  OutputsWatch& operator=(const OutputsWatch&) = delete;

  // From now on this directory; begins as start() does. A check that hangs is waited for.
  void watch(std::string root);
  // The newest reading, if it was not taken yet: it is new, or send_again() was called. A check
  // that does not end becomes a reading, too.
  std::optional<v1::OutputsReading> take();
  void send_again();
  void stop();

 private:
  struct Shared;
  explicit OutputsWatch(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}
  std::shared_ptr<Shared> shared_;
};

}  // namespace muster::agent::probe
