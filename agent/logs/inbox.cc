#include "agent/logs/inbox.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace muster::agent {

Result<std::shared_ptr<Inbox>> Inbox::make() {
  io::UniqueFd wake(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!wake) return fail_errno("making an event descriptor for the log watch", errno);
  return std::shared_ptr<Inbox>(new Inbox(std::move(wake)));
}

void Inbox::ring() {
  const std::uint64_t one = 1;
  (void)!::write(wake_.get(), &one, sizeof one);
}

void Inbox::post(Task task) {
  {
    const MutexLock lock(mutex_);
    if (closed_) return;  // `task` and its captures are destroyed outside the lock
    tasks_.push_back(std::move(task));
  }
  ring();
}

void Inbox::close() {
  std::vector<Task> dropped;
  {
    const MutexLock lock(mutex_);
    closed_ = true;
    dropped.swap(tasks_);
  }
  ring();
}

bool Inbox::take(std::vector<Task>& tasks) {
  // Read the eventfd first and the queue second: a post in between rings again.
  std::uint64_t count = 0;
  (void)!::read(wake_.get(), &count, sizeof count);
  const MutexLock lock(mutex_);
  tasks.swap(tasks_);
  return !closed_;
}

}  // namespace muster::agent
