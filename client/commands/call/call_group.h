// A CallGroup cancels calls together. The Interrupt and JobStreams own one each. Any thread.
//
// It cancels the calls in flight at once, and later calls as soon as they join.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <set>

#include "common/base/mutex.h"

namespace muster::client {

class CallGroup {
 public:
  CallGroup() = default;
  CallGroup(const CallGroup&) = delete;
  CallGroup& operator=(const CallGroup&) = delete;

  // Keeps `call` in the group for as long as the Member exists. The call must outlive the Member.
  class Member {
   public:
    Member(CallGroup& group, grpc::ClientContext& call);
    ~Member();
    Member(const Member&) = delete;
    Member& operator=(const Member&) = delete;

   private:
    CallGroup& group_;
    grpc::ClientContext& call_;
  };

  void cancel();
  [[nodiscard]] bool cancelled() const;
  // Returns true as soon as the group is cancelled, or false when the time is over.
  bool wait_for(std::chrono::nanoseconds time);

 private:
  mutable Mutex mutex_;
  CondVar changed_;
  std::set<grpc::ClientContext*> calls_ MUSTER_GUARDED_BY(mutex_);
  bool cancelled_ MUSTER_GUARDED_BY(mutex_) = false;
};

}  // namespace muster::client
