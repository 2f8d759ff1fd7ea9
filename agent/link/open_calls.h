// The calls to the controller that threads of starts have open, so that stop() can end them. Their
// owner creates it, and it outlives the calls. Thread-safe.
#pragma once

#include <grpcpp/grpcpp.h>

#include <set>

#include "common/base/mutex.h"
#include "common/base/time.h"

namespace muster::agent {

class OpenCalls {
 public:
  // An open call, as long as this lives. One that begins after stop() is ended at once.
  class Call {
   public:
    Call(OpenCalls& calls, grpc::ClientContext& context);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    [[nodiscard]] bool stopped() const;

   private:
    OpenCalls& calls_;
    grpc::ClientContext& context_;
  };

  // Ends every call. Returns when the last one is over, at most after `patience`: a file system may
  // block the thread of one.
  void stop(Duration patience);

 private:
  Mutex mutex_;
  CondVar gone_;
  std::set<grpc::ClientContext*> open_ MUSTER_GUARDED_BY(mutex_);
  bool stopped_ MUSTER_GUARDED_BY(mutex_) = false;
};

}  // namespace muster::agent
