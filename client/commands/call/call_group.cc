#include "client/commands/call/call_group.h"

namespace muster::client {

CallGroup::Member::Member(CallGroup& group, grpc::ClientContext& call)
    : group_(group), call_(call) {
  const MutexLock lock(group_.mutex_);
  group_.calls_.insert(&call_);
  if (group_.cancelled_) call_.TryCancel();
}

CallGroup::Member::~Member() {
  const MutexLock lock(group_.mutex_);
  group_.calls_.erase(&call_);
}

void CallGroup::cancel() {
  const MutexLock lock(mutex_);
  cancelled_ = true;
  for (grpc::ClientContext* call : calls_) call->TryCancel();
  changed_.notify_all();
}

bool CallGroup::cancelled() const {
  const MutexLock lock(mutex_);
  return cancelled_;
}

bool CallGroup::wait_for(std::chrono::nanoseconds time) {
  const MutexLock lock(mutex_);
  const auto until = std::chrono::steady_clock::now() + time;
  while (!cancelled_ && changed_.wait_until(mutex_, until)) {
  }
  return cancelled_;
}

}  // namespace muster::client
