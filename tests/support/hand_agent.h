// An agent's half of the stream to a controller, driven by hand. A test creates it. All calls block
// the test's thread, at most kPatience.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "common/rpc/channel.h"
#include "muster/v1/agent_service.grpc.pb.h"

namespace muster::controller {

inline constexpr std::chrono::seconds kPatience(60);

class HandAgent {
 public:
  explicit HandAgent(const std::shared_ptr<grpc::Channel>& channel)
      : stub_(v1::AgentService::NewStub(channel)) {
    context_.set_deadline(std::chrono::system_clock::now() + kPatience);
    stream_ = stub_->Connect(&context_);
  }
  explicit HandAgent(const std::string& address)
      : HandAgent(rpc::make_channel({.address = address})) {}
  ~HandAgent() {
    context_.TryCancel();
    if (!finished_) stream_->Finish();
  }
  HandAgent(const HandAgent&) = delete;
  HandAgent& operator=(const HandAgent&) = delete;

  static v1::Hello hello(const std::string& node, const std::string& instance,
                         std::uint32_t devices = 2) {
    v1::Hello hello;
    hello.set_protocol_min(1);
    hello.set_protocol_max(1);
    hello.set_node(node);
    hello.set_instance(instance);
    hello.set_boot_id("boot-1");
    hello.set_incarnation("incarnation-1");
    hello.mutable_uptime()->set_seconds(1);
    hello.mutable_inventory()->set_address("127.0.0.1");
    v1::NetworkInterface& network = *hello.mutable_inventory()->add_interfaces();
    network.set_name("lo");
    network.add_addresses("127.0.0.1");
    for (std::uint32_t id = 0; id < devices; ++id) {
      v1::Device& device = *hello.mutable_inventory()->add_devices();
      device.set_id(id);
      device.set_type("cpu");
    }
    return hello;
  }
  static v1::Hello hello(std::uint32_t devices, const std::string& node = "n1") {
    return hello(node, "i1", devices);
  }

  void say(const v1::Hello& hello) {
    v1::ConnectRequest request;
    *request.mutable_hello() = hello;
    stream_->Write(request);
  }
  // Returns true if it is welcomed.
  bool connect(const v1::Hello& hello) {
    say(hello);
    v1::ConnectResponse response;
    return stream_->Read(&response) && response.has_welcome();
  }
  void say(const v1::Facts& facts) {
    v1::ConnectRequest request;
    *request.mutable_facts() = facts;
    stream_->Write(request);
  }
  void say(v1::Fact fact) {
    v1::Facts facts;
    facts.set_sequence(++sequence_);
    *facts.add_facts() = std::move(fact);
    say(facts);
  }
  void say(const v1::Heartbeat& heartbeat) {
    v1::ConnectRequest request;
    *request.mutable_heartbeat() = heartbeat;
    stream_->Write(request);
  }

  // Reads until `wanted` is true. Returns false if the stream ended (status() has the reason).
  template <class Wanted>
  bool until(Wanted wanted, v1::ConnectResponse& response) {
    while (stream_->Read(&response)) {
      if (wanted(response)) return true;
    }
    return false;
  }
  // The next message that has orders; acknowledgements are skipped. Nothing: the stream ended.
  std::optional<v1::Orders> orders() {
    v1::ConnectResponse response;
    const auto wanted = [](const v1::ConnectResponse& read) { return read.has_orders(); };
    if (!until(wanted, response)) return std::nullopt;
    return response.orders();
  }
  // The next order for this attempt.
  std::optional<v1::Order> order(const std::string& job, v1::Order::WantCase want) {
    while (auto message = orders()) {
      for (const v1::Order& order : message->orders()) {
        if (order.job_id() == job && order.want_case() == want) return order;
      }
    }
    return std::nullopt;
  }
  // The next files that another node wants.
  std::optional<v1::FilesWanted> wanted() {
    v1::ConnectResponse response;
    const auto wanted = [](const v1::ConnectResponse& read) { return read.has_files_wanted(); };
    if (!until(wanted, response)) return std::nullopt;
    return response.files_wanted();
  }
  // Sends a heartbeat and reads until its acknowledgement; orders are skipped.
  bool heartbeat_acknowledged() {
    v1::Heartbeat one;
    one.set_number(++heartbeats_);
    say(one);
    v1::ConnectResponse response;
    return until(
        [this](const v1::ConnectResponse& read) {
          return read.has_heartbeat_ack() && read.heartbeat_ack().number() == heartbeats_;
        },
        response);
  }
  // Reads until the last fact is acknowledged.
  bool acknowledged() {
    v1::ConnectResponse response;
    return until(
        [this](const v1::ConnectResponse& read) {
          return read.has_fact_ack() && read.fact_ack().sequence() == sequence_;
        },
        response);
  }
  grpc::Status status() {
    v1::ConnectResponse response;
    while (stream_->Read(&response)) {
    }
    finished_ = true;
    return stream_->Finish();
  }

 private:
  bool finished_ = false;
  std::uint64_t sequence_ = 0, heartbeats_ = 0;
  std::unique_ptr<v1::AgentService::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::ConnectRequest, v1::ConnectResponse>> stream_;
};

}  // namespace muster::controller
