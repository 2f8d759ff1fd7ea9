#include "controller/listen/unread_answers.h"

#include <fmt/format.h>
#include <google/protobuf/message_lite.h>

#include <algorithm>
#include <atomic>
#include <utility>

namespace muster::controller {
namespace {

using grpc::experimental::InterceptionHookPoints;
using grpc::experimental::ServerRpcInfo;

class AnswersOfCall final : public grpc::experimental::Interceptor {
 public:
  AnswersOfCall(UnreadAnswers& answers, ServerRpcInfo& call, std::string owner)
      : answers_(answers), call_(call), owner_(std::move(owner)) {}
  ~AnswersOfCall() override { remove(); }
  AnswersOfCall(const AnswersOfCall&) = delete;
  AnswersOfCall& operator=(const AnswersOfCall&) = delete;

  void Intercept(grpc::experimental::InterceptorBatchMethods* batch) override {
    if (batch->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_MESSAGE))
      add(batch->GetSendMessage());
    // It was sent, or the call is over. A call sends one message at a time.
    if (batch->QueryInterceptionHookPoint(InterceptionHookPoints::POST_SEND_MESSAGE)) remove();
    batch->Proceed();
  }

 private:
  // Messages of the controller's own services are of Protobuf. They must not be asked for in their
  // serialized form: gRPC 1.51 then forgets to say when they were sent.
  void add(const void* message) {
    if (message == nullptr) return;
    const std::size_t bytes =
        static_cast<const google::protobuf::MessageLite*>(message)->ByteSizeLong();
    if (answers_.add(owner_, call_.method(), bytes))
      bytes_ = bytes;
    else
      call_.server_context()->TryCancel();
  }
  void remove() { answers_.remove(owner_, bytes_.exchange(0)); }

  UnreadAnswers& answers_;
  ServerRpcInfo& call_;
  const std::string owner_;
  std::atomic<std::size_t> bytes_ = 0;
};

}  // namespace

grpc::experimental::Interceptor* UnreadAnswers::of(ServerRpcInfo& call, std::string owner) {
  if (!std::string_view(call.method()).starts_with("/muster.")) return nullptr;
  return new AnswersOfCall(*this, call, std::move(owner));
}

bool UnreadAnswers::add(const std::string& owner, std::string_view method, std::size_t bytes) {
  {
    const MutexLock lock(mutex_);
    Unread& unread = of_owner_[owner];
    if (unread.bytes == 0 || unread.bytes + bytes <= kOfOwnerMost) {
      unread.bytes += bytes;
      return true;
    }
    if (std::exchange(unread.is_warned, true)) return false;
  }
  warn_(fmt::format("a call of {} to '{}' was ended: {} leaves answers of {} MiB unread", owner,
                    method, owner, kOfOwnerMost >> 20));
  return false;
}

void UnreadAnswers::remove(const std::string& owner, std::size_t bytes) {
  if (bytes == 0) return;
  const MutexLock lock(mutex_);
  const auto found = of_owner_.find(owner);
  if (found == of_owner_.end()) return;
  found->second.bytes -= std::min(found->second.bytes, bytes);
  if (found->second.bytes == 0) of_owner_.erase(found);
}

}  // namespace muster::controller
