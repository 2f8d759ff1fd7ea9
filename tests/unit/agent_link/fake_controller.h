// A controller's end of AgentService.Connect on a unix socket, which sends only what a test orders.
// A test owns it. Calls run on gRPC's threads; the other functions run on the test's thread.
//
// It records all requests.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "muster/v1/agent_service.grpc.pb.h"

namespace muster::agent {

class FakeController final : public v1::AgentService::Service {
 public:
  using Stream = grpc::ServerReaderWriter<v1::ConnectResponse, v1::ConnectRequest>;
  // Runs on the call's thread after each request; a status ends the stream.
  using Answer = std::function<std::optional<grpc::Status>(Stream&, const v1::ConnectRequest&)>;

  FakeController(const std::string& address, Answer answer) : answer_(std::move(answer)) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address, grpc::InsecureServerCredentials());
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~FakeController() override { shut_down(); }
  // Drops every stream, as a kill would.
  void shut_down() {
    if (server_) server_->Shutdown(std::chrono::system_clock::now());
    server_.reset();
  }

  grpc::Status Connect(grpc::ServerContext*, Stream* stream) override {
    v1::ConnectRequest request;
    {
      const std::lock_guard lock(mutex_);
      ++connections_;
    }
    while (stream->Read(&request)) {
      hear(request);
      if (auto status = answer_(*stream, request)) return *status;
    }
    return grpc::Status::OK;
  }

  // Returns the first request that fits, among all past requests and those until the deadline.
  std::optional<v1::ConnectRequest> wait_for(
      const std::function<bool(const v1::ConnectRequest&)>& fits,
      std::chrono::seconds most = std::chrono::seconds(60)) {
    const auto deadline = std::chrono::steady_clock::now() + most;
    std::unique_lock lock(mutex_);
    for (std::size_t at = 0;;) {
      for (; at < heard_.size(); ++at) {
        if (fits(heard_[at])) return heard_[at];
      }
      if (!more_.wait_until(lock, deadline, [&] { return heard_.size() > at; }))
        return std::nullopt;
    }
  }
  std::vector<v1::ConnectRequest> heard() {
    const std::lock_guard lock(mutex_);
    return {heard_.begin(), heard_.end()};
  }
  int connections() {
    const std::lock_guard lock(mutex_);
    return connections_;
  }

 private:
  void hear(const v1::ConnectRequest& request) {
    {
      const std::lock_guard lock(mutex_);
      heard_.push_back(request);
    }
    more_.notify_all();
  }
  Answer answer_;
  std::unique_ptr<grpc::Server> server_;
  std::mutex mutex_;
  std::condition_variable more_;
  std::deque<v1::ConnectRequest> heard_;
  int connections_ = 0;
};

inline v1::ConnectResponse welcome_message(const std::string& cluster = "c-1",
                                           std::uint64_t epoch = 1, std::uint32_t protocol = 1) {
  v1::ConnectResponse response;
  response.mutable_welcome()->set_protocol(protocol);
  response.mutable_welcome()->set_cluster_id(cluster);
  response.mutable_welcome()->set_epoch(epoch);
  response.mutable_welcome()->mutable_heartbeat_interval()->set_seconds(1);
  return response;
}

}  // namespace muster::agent
