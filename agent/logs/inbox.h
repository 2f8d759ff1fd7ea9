// Inbox is the queue of tasks that other threads post to the watch thread. FileWatch, the watch
// thread and the scan threads share it (shared_ptr). Any thread may call it. A task gets the
// WatchThread, which only the watch thread can pass to it.
//
// It is shared because a thread that hangs in a file system may return after FileWatch is
// destroyed. The task that such a thread posts is then dropped.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "common/base/error.h"
#include "common/base/mutex.h"
#include "common/io/unique_fd.h"

namespace muster::agent {

class WatchThread;

class Inbox {
 public:
  // Its argument is never null. (libstdc++ takes no reference to an incomplete type here.)
  using Task = std::move_only_function<void(WatchThread*)>;
  // Errors: no descriptor is left for the wake-up.
  static Result<std::shared_ptr<Inbox>> make();

  void post(Task task) MUSTER_EXCLUDES(mutex_);  // after close() the task is dropped
  void close() MUSTER_EXCLUDES(mutex_);
  // The descriptor is readable when take() has tasks.
  [[nodiscard]] int fd() const { return wake_.get(); }
  // Takes all tasks in the order of their posts. Returns false if the inbox is closed.
  bool take(std::vector<Task>& tasks) MUSTER_EXCLUDES(mutex_);

 private:
  explicit Inbox(io::UniqueFd wake) : wake_(std::move(wake)) {}
  void ring();
  const io::UniqueFd wake_;
  Mutex mutex_;
  std::vector<Task> tasks_ MUSTER_GUARDED_BY(mutex_);
  bool closed_ MUSTER_GUARDED_BY(mutex_) = false;
};

}  // namespace muster::agent
