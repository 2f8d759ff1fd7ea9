#include "agent/link/open_calls.h"

#include <chrono>

namespace muster::agent {

OpenCalls::Call::Call(OpenCalls& calls, grpc::ClientContext& context)
    : calls_(calls), context_(context) {
  const MutexLock lock(calls_.mutex_);
  calls_.open_.insert(&context_);
  if (calls_.stopped_) context_.TryCancel();
}

OpenCalls::Call::~Call() {
  const MutexLock lock(calls_.mutex_);
  calls_.open_.erase(&context_);
  calls_.gone_.notify_all();
}

bool OpenCalls::Call::stopped() const {
  const MutexLock lock(calls_.mutex_);
  return calls_.stopped_;
}

void OpenCalls::stop(Duration patience) {
  const MutexLock lock(mutex_);
  stopped_ = true;
  for (grpc::ClientContext* context : open_) context->TryCancel();
  const auto until = std::chrono::steady_clock::now() + patience;
  while (!open_.empty() && gone_.wait_until(mutex_, until)) {
  }
}

}  // namespace muster::agent
