#include "client/commands/call/call_group.h"

namespace muster::client {

CallGroup::Member::Member(CallGroup& group, grpc::ClientContext& call)
    : group_(group), call_(call) {
  const std::scoped_lock lock(group_.mutex_);
  group_.calls_.insert(&call_);
  if (group_.cancelled_) call_.TryCancel();
}

CallGroup::Member::~Member() {
  const std::scoped_lock lock(group_.mutex_);
  group_.calls_.erase(&call_);
}

void CallGroup::cancel() {
  const std::scoped_lock lock(mutex_);
  cancelled_ = true;
  for (grpc::ClientContext* call : calls_) call->TryCancel();
  changed_.notify_all();
}

bool CallGroup::cancelled() const {
  const std::scoped_lock lock(mutex_);
  return cancelled_;
}

bool CallGroup::wait_for(std::chrono::nanoseconds time) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, time, [this] { return cancelled_; });
}

}  // namespace muster::client
