// UnreadAnswers bounds what the controller holds of answers that a caller asks for and does not
// read, by the name of his certificate. The Server owns it. Thread-safe.
//
// gRPC holds an answer until the other end lets it be sent, however long that takes. Each call of
// each connection can have one, of up to 16 MiB (rpc::kMessageBytesMax).
#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/server_interceptor.h>

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/mutex.h"

namespace muster::controller {

class UnreadAnswers {
 public:
  // Of all calls of one name: four of the largest answers.
  static constexpr std::size_t kOfOwnerMost = 64 << 20;

  // `warn` gets a line when a call was ended: one for each name, until all its answers are read.
  explicit UnreadAnswers(std::function<void(const std::string& line)> warn)
      : warn_(std::move(warn)) {}

  // Watches the answers of one call, and cancels it where they would be too much. gRPC owns it.
  // Nullptr for services of gRPC itself, whose answers are small. This object must outlive the
  // server.
  grpc::experimental::Interceptor* of(grpc::experimental::ServerRpcInfo& call, std::string owner);

  // False: with these bytes it is more than the bound, and they are not counted. One answer alone
  // is never too much.
  [[nodiscard]] bool add(const std::string& owner, std::string_view method, std::size_t bytes);
  void remove(const std::string& owner, std::size_t bytes);

 private:
  struct Unread {
    std::size_t bytes = 0;
    bool is_warned = false;
  };

  const std::function<void(const std::string&)> warn_;
  Mutex mutex_;
  std::map<std::string, Unread> of_owner_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::controller
