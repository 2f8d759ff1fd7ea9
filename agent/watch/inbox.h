// What other threads have the watch's thread do. Shared: a thread that hangs in a file system may
// come back when the watch is long gone; what it brings is then dropped. Any thread.
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
  // Errors: no descriptor left to be woken by.
  static Result<std::shared_ptr<Inbox>> make();

  void post(Task task);  // after close(): dropped
  void close();
  // Readable: take() has something.
  [[nodiscard]] int fd() const { return wake_.get(); }
  // All of it, in the order of the posts; false: closed.
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
