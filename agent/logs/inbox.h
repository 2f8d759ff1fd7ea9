// Inbox is the queue of tasks that other threads post to the watch thread. FileWatch and the scan
// threads share it (shared_ptr). Any thread may call it.
//
// It is shared because a thread that hangs in a file system may return after FileWatch is
// destroyed. The task that such a thread posts is then dropped.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "common/base/error.h"
#include "common/io/unique_fd.h"

namespace muster::agent {

class Inbox {
 public:
  using Task = std::move_only_function<void()>;
  // Errors: no descriptor is left for the wake-up.
  static Result<std::shared_ptr<Inbox>> make();

  void post(Task task);  // after close() the task is dropped
  void close();
  // The descriptor is readable when take() has tasks.
  [[nodiscard]] int fd() const { return wake_.get(); }
  // Takes all tasks in the order of their posts. Returns false if the inbox is closed.
  bool take(std::vector<Task>& tasks);

 private:
  explicit Inbox(io::UniqueFd wake) : wake_(std::move(wake)) {}
  void ring();
  const io::UniqueFd wake_;
  std::mutex mutex_;
  std::vector<Task> tasks_;
  bool closed_ = false;
};

}  // namespace muster::agent
