// Calls that are cancelled together: those in flight at once, those to come as soon as they join.
// Any thread.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>

namespace muster::client {

class CallGroup {
 public:
  CallGroup() = default;
  CallGroup(const CallGroup&) = delete;
  CallGroup& operator=(const CallGroup&) = delete;

  // For as long as it lives, `call` is of the group; the call outlives it.
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
  // True as soon as the group is cancelled, false when the time is over.
  bool wait_for(std::chrono::nanoseconds time);

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::set<grpc::ClientContext*> calls_;  // mutex_
  bool cancelled_ = false;                // mutex_
};

}  // namespace muster::client
